//! What differs between kernel releases when domains are built.

/// The rules of one kernel release for building scheduling domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainRules {
    /// Name of the level that spans a node: `DIE` before 6.7, `PKG` since (kernel commit
    /// f577cd57bfaa).
    pub package_name: &'static str,
    /// Whether the CLS level exists: since 5.16 (`CONFIG_SCHED_CLUSTER`).
    pub cluster_level: bool,
    /// Whether `SD_CLUSTER`, `sd_share_id` and `sched_cluster_active` exist: since 6.7 (commit
    /// b95303e0aeaf).
    pub cluster_flag: bool,
    /// Whether dropping a degenerate parent copies the child's flags to the first group of the
    /// grandparent: since 6.6 (commit bf2dc42d6beb).
    pub propagate_group_flags: bool,
    /// Whether `imb_numa_nr` is computed: since 5.18 (commit e496132ebedd); 0 before.
    pub numa_imbalance: bool,
    /// `imbalance_pct` of a level that shares neither capacity nor cache: 125 before 5.10, 117 since
    /// (commit 2208cdaa56c9).
    pub imbalance_pct: u32,
    /// `busy_factor`: 32 before 5.10, 16 since (commit 6e7499135db7).
    pub busy_factor: u32,
    /// Whether wake-ups balance in the domains up to one of CPUs of different capacity: before 5.7.
    pub balance_wake_asym: bool,
    /// Whether POWER has a CACHE level also where no cores share a cache: before 6.8, when levels
    /// were fixed up after the fact.
    pub power_cache_level_always: bool,
}

impl DomainRules {
    /// The rules of a release, by its number: `(6, 12)` for 6.12.
    pub fn for_release(major: u32, minor: u32) -> Self {
        let since = |since: (u32, u32)| (major, minor) >= since;
        DomainRules {
            package_name: if since((6, 7)) { "PKG" } else { "DIE" },
            cluster_level: since((5, 16)),
            cluster_flag: since((6, 7)),
            propagate_group_flags: since((6, 6)),
            numa_imbalance: since((5, 18)),
            imbalance_pct: if since((5, 10)) { 117 } else { 125 },
            busy_factor: if since((5, 10)) { 16 } else { 32 },
            balance_wake_asym: !since((5, 7)),
            power_cache_level_always: !since((6, 8)),
        }
    }

    /// Kernel 6.5.
    pub fn v6_5() -> Self {
        Self::for_release(6, 5)
    }

    /// Kernel 6.12.
    pub fn v6_12() -> Self {
        Self::for_release(6, 12)
    }
}
