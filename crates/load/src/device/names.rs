//! What the names of a device and of its operations say.

use std::time::Duration;

use model::OpId;

/// Makes the name of an operation, which says when it was meant to be sent, so that whoever hears of it knows how late that is.
pub(crate) fn op_id(intended: Duration, device: u32, number: u32) -> OpId {
    let mut bytes = [0; OpId::LENGTH];
    bytes[..8].copy_from_slice(&nanoseconds(intended).to_be_bytes());
    bytes[8..12].copy_from_slice(&device.to_be_bytes());
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    OpId::from_bytes(bytes)
}

pub(super) fn read_op_id(op_id: &OpId) -> (Duration, u32, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *op_id.as_bytes();
    let intended = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let (device, number) = (u32::from_be_bytes([i, j, k, l]), u32::from_be_bytes([m, n, o, p]));
    (Duration::from_nanos(intended), device, number)
}

/// Returns the incarnation of a device in a run.
pub(crate) fn incarnation(seed: u64, device: u32) -> u64 {
    seed ^ u64::from(device).wrapping_mul(0x2545_f491_4f6c_dd1d)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_an_operation_says_when_it_was_meant_to_be_sent() {
        let moment = Duration::from_nanos(1_234_567_890_123);
        assert_eq!(read_op_id(&op_id(moment, 77, 1 << 20)), (moment, 77, 1 << 20));
    }
}
