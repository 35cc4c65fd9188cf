//! What the hardware is: CPUs, cores, clusters, LLCs, dies, nodes, idle states and costs, and the
//! scheduling domains that the kernel builds from them.
//!
//! Everything here is read-only once built: a machine is a value, never a look at the host (only
//! [`sysfs`] looks at one, and gives back a value).

pub mod domains;
pub mod ids;
pub mod mask;

pub use ids::{ClusterId, CoreId, CpuId, GroupId, LlcId, NodeId, Ns};
pub use mask::CpuMask;
