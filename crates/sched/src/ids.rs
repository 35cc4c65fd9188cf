//! Identifiers into the scheduler's tables.

macro_rules! table_index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// No such thing (the kernel's NULL).
            pub const NONE: $name = $name(u32::MAX);

            /// Whether it names something.
            #[inline(always)]
            pub fn is_some(self) -> bool {
                self.0 != u32::MAX
            }

            /// Whether it is [`Self::NONE`].
            #[inline(always)]
            pub fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// As an index into its table.
            #[inline(always)]
            pub fn index(self) -> usize {
                debug_assert!(self.is_some());
                self.0 as usize
            }

            /// The identifier with this index.
            #[inline(always)]
            pub fn from_index(index: usize) -> Self {
                debug_assert!(index < u32::MAX as usize);
                $name(index as u32)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }
    };
}

table_index!(
    /// A task.
    TaskId);
table_index!(
    /// A scheduling entity: a task's, or a task group's on one CPU.
    SeId);
table_index!(
    /// A task group.
    TgId);
table_index!(
    /// A fair run queue: `tg * ncpu + cpu`.
    CfsId);

/// A core-scheduling cookie (`core_cookie`): tasks with the same one may share a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie(pub u64);

impl Cookie {
    /// No cookie: such tasks trust each other, and no task that has one.
    pub const NONE: Cookie = Cookie(0);

    /// Whether there is one.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl TgId {
    /// `root_task_group`.
    pub const ROOT: TgId = TgId(0);
}
