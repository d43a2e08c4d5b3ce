//! How much memory this process takes.

/// Returns how many bytes of memory this process has held at once at most, since it began; nothing where the kernel does not tell.
pub(crate) fn peak() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_the_peak_in_kib() {
        let status = "Name:\tsyncline\nVmPeak:\t  900 kB\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(peak_of(status), Some(12345 << 10));
        for other in ["", "VmHWM:\n", "VmHWM: many kB", "VmHWM: 5 MB"] {
            assert_eq!(peak_of(other), None, "{other}");
        }
        let held = vec![1_u8; 8 << 20];
        assert!(peak().is_none_or(|peak| peak > held.len() as u64));
    }
}
