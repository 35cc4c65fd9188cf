//! What the hardware is: CPUs, cores, clusters, LLCs, dies, nodes, idle states and costs, and the
//! scheduling domains that the kernel builds from them.
//!
//! Everything here is read-only once built: a machine is a value, never a look at the host (only
//! [`sysfs`] looks at one, and gives back a value; [`import`] reads what others tell of theirs).

pub mod costs;
pub mod description;
pub mod domains;
pub mod error;
mod excerpt;
pub mod ids;
pub mod import;
mod layout;
pub mod mask;
pub mod preset;
pub mod show;
pub mod sysfs;
pub mod topology;

pub use costs::{Band, Costs, Figure};
pub use domains::{DomainField, DomainRules, DomainSetting, DomainSettingError};
pub use domains::{SchedDomain, SchedGroup, SchedTopology};
pub use error::MachineError;
pub use excerpt::{excerpt, excerpt_message};
pub use ids::{ClusterId, CoreId, CpuId, GroupId, LlcId, NodeId, Ns};
pub use import::Import;
pub use mask::CpuMask;
pub use preset::presets;
pub use topology::{Arch, Cpu, Distance, IdleState, Machine};
