//! What the allocator of the system is told.
//!
//! glibc keeps what was freed in *arenas*, up to eight for each core, each for the threads that happened to use it. A server works at
//! requests on many threads, and each arena keeps about as much as one request had, or what is kept open of packs; so the memory of a
//! server grew with the number of its threads, not with its work (docs/decisions/0022-a-server-tells-the-allocator-how-many-arenas.md).

/// Lets there be no more arenas than cores, and two at least. Called before there are other threads. Other allocators know nothing of it.
pub(crate) fn bound_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = i32::try_from(cores).unwrap_or(i32::MAX).max(2);
        #[expect(unsafe_code, reason = "no library offers this call as a safe one")]
        // SAFETY: `mallopt` takes two numbers, no pointers, and may be called at any time; it returns 0 where it refuses one.
        let is_taken = unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
        debug_assert_eq!(is_taken, 1);
    }
}
