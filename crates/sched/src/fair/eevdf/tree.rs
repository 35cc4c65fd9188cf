//! The tree of a fair run queue: queued entities by deadline, augmented by the least vruntime and
//! the least slice of each subtree (kernel `sched/fair.c`, `__enqueue_entity()`; `lib/rbtree.c`).
//!
//! It is the kernel's own red-black tree and not just any ordered set, since one of the figures that
//! it keeps depends on its shape: a rotation hands on the least vruntime but not the least slice
//! (`RB_DECLARE_CALLBACKS` names only one field), so that a root may show more than the least slice
//! of its tree, and groups get their slices from there.

use crate::fair::timeline::{before, min_vruntime};
use crate::ids::SeId;
use crate::state::{SchedEntity, Timeline, TreeNode};

const LEFT: usize = 0;
const RIGHT: usize = 1;

impl Timeline {
    /// The entity with the earliest deadline (`__pick_first_entity`).
    #[inline(always)]
    pub fn first(&self) -> SeId {
        self.leftmost
    }

    /// Adds an entity, after those with the same deadline (`__enqueue_entity`, without the sums).
    pub fn insert(&mut self, table: &mut [SchedEntity], se: SeId) {
        let (mut parent, mut side, mut leftmost) = (SeId::NONE, LEFT, true);
        let mut at = self.root;
        let deadline = table[se.index()].deadline;
        while at.is_some() {
            parent = at;
            side = usize::from(!before(deadline, table[at.index()].deadline));
            leftmost &= side == LEFT;
            at = table[at.index()].node.child[side];
        }
        let entity = &mut table[se.index()];
        entity.node = TreeNode {
            child: [SeId::NONE; 2],
            parent,
            red: true,
            min_vruntime: entity.vruntime,
            min_slice: entity.slice,
        };
        if leftmost {
            self.leftmost = se;
        }
        let mut tree = Tree {
            root: &mut self.root,
            table,
        };
        if parent.is_none() {
            *tree.root = se;
            tree.node(se).red = false;
            return;
        }
        tree.node(parent).child[side] = se;
        tree.propagate(parent, SeId::NONE);
        tree.balance_insert(se);
    }

    /// Takes an entity out (`__dequeue_entity`, without the sums).
    pub fn remove(&mut self, table: &mut [SchedEntity], se: SeId) {
        if self.leftmost == se {
            let node = table[se.index()].node;
            let mut next = node.child[RIGHT];
            if next.is_none() {
                next = node.parent;
            } else {
                while table[next.index()].node.child[LEFT].is_some() {
                    next = table[next.index()].node.child[LEFT];
                }
            }
            self.leftmost = next;
        }
        let mut tree = Tree {
            root: &mut self.root,
            table,
        };
        let hole = tree.unlink(se);
        if hole.is_some() {
            tree.balance_remove(hole);
        }
    }

    /// The slice of an entity in the tree has changed (`min_vruntime_cb_propagate`).
    pub fn slice_changed(&mut self, table: &mut [SchedEntity], se: SeId) {
        let root = &mut self.root;
        Tree { root, table }.propagate(se, SeId::NONE);
    }
}

struct Tree<'a> {
    root: &'a mut SeId,
    table: &'a mut [SchedEntity],
}

impl Tree<'_> {
    #[inline(always)]
    fn node(&mut self, se: SeId) -> &mut TreeNode {
        &mut self.table[se.index()].node
    }

    #[inline(always)]
    fn child(&self, se: SeId, side: usize) -> SeId {
        self.table[se.index()].node.child[side]
    }

    #[inline(always)]
    fn parent(&self, se: SeId) -> SeId {
        self.table[se.index()].node.parent
    }

    #[inline(always)]
    fn is_red(&self, se: SeId) -> bool {
        se.is_some() && self.table[se.index()].node.red
    }

    /// On which side of its parent a node is.
    #[inline(always)]
    fn side_of(&self, parent: SeId, child: SeId) -> usize {
        usize::from(self.child(parent, RIGHT) == child)
    }

    fn set_parent(&mut self, se: SeId, parent: SeId) {
        if se.is_some() {
            self.node(se).parent = parent;
        }
    }

    /// Puts `new`, or nothing, where `old` hangs.
    fn replace_child(&mut self, parent: SeId, old: SeId, new: SeId) {
        if parent.is_none() {
            *self.root = new;
        } else {
            let side = self.side_of(parent, old);
            self.node(parent).child[side] = new;
        }
    }

    /// Computes what a node knows of its subtree (`min_vruntime_update`); false if it changed.
    fn update(&mut self, se: SeId) -> bool {
        let entity = &self.table[se.index()];
        let (mut vruntime, mut slice) = (entity.vruntime, entity.slice);
        for child in entity.node.child {
            if child.is_some() {
                let below = &self.table[child.index()].node;
                vruntime = min_vruntime(vruntime, below.min_vruntime);
                slice = slice.min(below.min_slice);
            }
        }
        let node = self.node(se);
        let same = node.min_vruntime == vruntime && node.min_slice == slice;
        (node.min_vruntime, node.min_slice) = (vruntime, slice);
        same
    }

    /// The same upwards, until nothing changes.
    fn propagate(&mut self, mut se: SeId, stop: SeId) {
        while se != stop && !self.update(se) {
            se = self.parent(se);
        }
    }

    /// A node sinks to a side, and its child on the other side rises into its place. What rises
    /// takes over the least vruntime of the whole, but keeps its own least slice.
    fn rotate(&mut self, sinks: SeId, side: usize) {
        let rises = self.child(sinks, 1 - side);
        let inner = self.child(rises, side);
        let parent = self.parent(sinks);
        self.node(sinks).child[1 - side] = inner;
        self.set_parent(inner, sinks);
        self.replace_child(parent, sinks, rises);
        let least = self.node(sinks).min_vruntime;
        let up = self.node(rises);
        up.child[side] = sinks;
        up.parent = parent;
        up.min_vruntime = least;
        self.node(sinks).parent = rises;
        self.update(sinks);
    }

    /// Restores the colours after a red node was added.
    fn balance_insert(&mut self, mut se: SeId) {
        loop {
            let parent = self.parent(se);
            if parent.is_none() {
                self.node(se).red = false;
                return;
            }
            if !self.is_red(parent) {
                return;
            }
            // A red node is not the root.
            let top = self.parent(parent);
            let side = self.side_of(top, parent);
            let uncle = self.child(top, 1 - side);
            if self.is_red(uncle) {
                self.node(uncle).red = false;
                self.node(parent).red = false;
                self.node(top).red = true;
                se = top;
                continue;
            }
            let mut middle = parent;
            if self.child(parent, 1 - side) == se {
                self.rotate(parent, side);
                middle = se;
            }
            self.node(middle).red = false;
            self.node(top).red = true;
            self.rotate(top, 1 - side);
            return;
        }
    }

    /// Takes a node out. Gives the node below which a black one is missing now, if any.
    fn unlink(&mut self, se: SeId) -> SeId {
        let node = *self.node(se);
        let [left, right] = node.child;
        if left.is_some() && right.is_some() {
            return self.unlink_inner(se, node);
        }
        let only = if left.is_some() { left } else { right };
        self.replace_child(node.parent, se, only);
        let mut hole = SeId::NONE;
        if only.is_some() {
            // The only child of a node is red, and the node black.
            let child = self.node(only);
            (child.parent, child.red) = (node.parent, node.red);
        } else if !node.red {
            hole = node.parent;
        }
        self.propagate(node.parent, SeId::NONE);
        hole
    }

    /// The same of a node with two children: its successor takes its place.
    fn unlink_inner(&mut self, se: SeId, node: TreeNode) -> SeId {
        let [left, right] = node.child;
        let mut next = right;
        while self.child(next, LEFT).is_some() {
            next = self.child(next, LEFT);
        }
        let orphan = self.child(next, RIGHT);
        let mut above = next;
        self.node(next).min_vruntime = node.min_vruntime;
        if next != right {
            above = self.parent(next);
            self.node(above).child[LEFT] = orphan;
            self.node(next).child[RIGHT] = right;
            self.node(right).parent = next;
            self.propagate(above, next);
        }
        self.node(next).child[LEFT] = left;
        self.node(left).parent = next;
        self.replace_child(node.parent, se, next);
        let mut hole = SeId::NONE;
        if orphan.is_some() {
            let child = self.node(orphan);
            (child.parent, child.red) = (above, false);
        } else if !self.is_red(next) {
            hole = above;
        }
        let moved = self.node(next);
        (moved.parent, moved.red) = (node.parent, node.red);
        self.propagate(next, SeId::NONE);
        hole
    }

    /// Restores the colours where a black node is missing below `parent`.
    fn balance_remove(&mut self, mut parent: SeId) {
        let mut short = SeId::NONE;
        loop {
            let side = usize::from(self.child(parent, LEFT) != short);
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.node(sibling).red = false;
                self.node(parent).red = true;
                self.rotate(parent, side);
                sibling = self.child(parent, 1 - side);
            }
            let (near, mut far) = (self.child(sibling, side), self.child(sibling, 1 - side));
            if !self.is_red(far) {
                if !self.is_red(near) {
                    self.node(sibling).red = true;
                    if self.is_red(parent) {
                        self.node(parent).red = false;
                        return;
                    }
                    short = parent;
                    parent = self.parent(short);
                    if parent.is_none() {
                        return;
                    }
                    continue;
                }
                self.rotate(sibling, 1 - side);
                (far, sibling) = (sibling, near);
            }
            let colour = self.is_red(parent);
            self.node(sibling).red = colour;
            self.node(parent).red = false;
            self.node(far).red = false;
            self.rotate(parent, side);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entity(deadline: u64, vruntime: u64, slice: u64) -> SchedEntity {
        SchedEntity {
            deadline,
            vruntime,
            slice,
            ..SchedEntity::default()
        }
    }

    /// The entities in order, after checks of colours, links and the least vruntimes.
    fn in_order(line: &Timeline, table: &[SchedEntity]) -> Vec<u32> {
        let mut order = Vec::new();
        let mut walk = Walk {
            table,
            order: &mut order,
        };
        if line.root.is_some() {
            assert!(!table[line.root.index()].node.red, "the root is black");
            walk.check(line.root, SeId::NONE);
        }
        assert_eq!(
            order.first().copied(),
            line.first().is_some().then_some(line.first().0)
        );
        order
    }

    struct Walk<'a> {
        table: &'a [SchedEntity],
        order: &'a mut Vec<u32>,
    }

    impl Walk<'_> {
        /// Gives the number of black nodes down to a leaf and the least vruntime.
        fn check(&mut self, se: SeId, parent: SeId) -> (u32, u64) {
            if se.is_none() {
                return (0, u64::MAX);
            }
            let entity = &self.table[se.index()];
            let node = &entity.node;
            assert_eq!(node.parent, parent);
            let red = |child: SeId| child.is_some() && self.table[child.index()].node.red;
            assert!(
                !node.red || !node.child.into_iter().any(red),
                "no two reds in a row"
            );
            let (left, left_min) = self.check(node.child[LEFT], se);
            self.order.push(se.0);
            let (right, right_min) = self.check(node.child[RIGHT], se);
            assert_eq!(left, right, "as many black nodes on either side");
            let least = entity.vruntime.min(left_min).min(right_min);
            assert_eq!(node.min_vruntime, least);
            assert!(node.min_slice <= entity.slice);
            (left + u32::from(!node.red), least)
        }
    }

    proptest! {
        #[test]
        fn it_is_ordered_by_deadline_and_arrival_and_knows_the_least_vruntime(
            steps in prop::collection::vec((any::<bool>(), 0u64..40, 0u64..1000), 1..200)
        ) {
            let mut line = Timeline::default();
            let mut table = Vec::new();
            let mut model: Vec<u32> = Vec::new();
            for (add, key, vruntime) in steps {
                if add || model.is_empty() {
                    let se = SeId::from_index(table.len());
                    table.push(entity(key, vruntime, 100));
                    let at = model.iter().position(|&other| key < table[other as usize].deadline);
                    model.insert(at.unwrap_or(model.len()), se.0);
                    line.insert(&mut table, se);
                } else {
                    let gone = model.remove(key as usize % model.len());
                    line.remove(&mut table, SeId(gone));
                }
                prop_assert_eq!(&in_order(&line, &table), &model);
            }
        }
    }

    #[test]
    fn deadlines_may_wrap() {
        let mut table = vec![entity(5, 0, 1), entity(u64::MAX - 5, 0, 1)];
        let mut line = Timeline::default();
        line.insert(&mut table, SeId(0));
        line.insert(&mut table, SeId(1));
        assert_eq!(line.first(), SeId(1));
    }

    #[test]
    fn a_rotation_leaves_a_stale_least_slice_at_the_root() {
        // The third of a row makes the second the root, which knew only of itself and the third.
        let mut table = vec![entity(1, 1, 10), entity(2, 2, 20), entity(3, 3, 30)];
        let mut line = Timeline::default();
        for se in 0..3 {
            line.insert(&mut table, SeId(se));
        }
        assert_eq!(line.root, SeId(1));
        let root = table[1].node;
        assert_eq!((root.min_vruntime, root.min_slice), (1, 20));
        // One that changes nothing below leaves it so; only a change that passes by sets it right.
        table.push(entity(4, 4, 40));
        line.insert(&mut table, SeId(3));
        assert_eq!(table[1].node.min_slice, 20);
        table.push(entity(0, 0, 15));
        line.insert(&mut table, SeId(4));
        assert_eq!(table[1].node.min_slice, 10);
    }
}
