//! StackSync's experiments with its clients (2014, sections 5.2 and 5.3), with devices and a server that the program lends.
//!
//! [`overhead`] is figure 5, [`times`] figures 6a and 6b. The paper's clients were computers beside a cluster; here all is on one computer.

pub mod overhead;
pub mod times;

const KB: u64 = 1024;
const MB: u64 = 1024 * KB;

/// Returns the value below which such a share of some values lies.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}
