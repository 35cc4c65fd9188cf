//! How the objects of a level are numbered.

use super::*;

/// One loop of an interleaving: objects `step` apart, `count` of them, are numbered one after the
/// other.
#[derive(Clone, Copy, Debug)]
struct Loop {
    step: usize,
    count: usize,
}

impl Description {
    /// The number of each of `total` objects in the order in which they stand.
    pub fn numbers(
        &self,
        indexes: &Option<Word>,
        total: usize,
    ) -> Result<Vec<usize>, MachineError> {
        let Some(word) = indexes else {
            return Ok((0..total).collect());
        };
        if word.text.chars().all(|c| c.is_ascii_digit() || c == ',') {
            return listed(word, total);
        }
        let mut loops = if word.text.starts_with(|c: char| c.is_ascii_digit()) {
            written_loops(word)?
        } else {
            self.loops_of_types(word, total)?
        };
        let product = |product: usize, each: &Loop| product.saturating_mul(each.count);
        let covered = loops.iter().fold(1, product);
        if covered != total {
            // One loop may be left out, if it is the innermost.
            let least = loops.iter().map(|each| each.step).min();
            if !total.is_multiple_of(covered) || least != Some(total / covered) {
                let expected = format!("loops over {total} objects, not {covered}");
                return Err(wrong(word, &expected));
            }
            loops.push(Loop {
                step: 1,
                count: total / covered,
            });
        }
        interleaved(word, &loops, total)
    }

    /// The loops that go over the objects of each type within those of the type above.
    fn loops_of_types(&self, word: &Word, total: usize) -> Result<Vec<Loop>, MachineError> {
        let mut depths = Vec::new();
        for name in word.text.split(':') {
            // As in hwloc, the PUs themselves are no type to loop over.
            let above = &self.levels[..self.levels.len() - 1];
            let level = |wanted: Type| {
                above.iter().position(|level| match wanted {
                    Type::Group(None) => matches!(level.kind, Some(Type::Group(_))),
                    _ => level.kind == Some(wanted),
                })
            };
            let depth = type_of(name).and_then(level);
            let Some(depth) = depth.filter(|depth| !depths.contains(depth)) else {
                let expected = format!("types above the PUs, each once, not '{name}'");
                return Err(wrong(word, &expected));
            };
            depths.push(depth);
        }
        let a_loop = |&depth: &usize| {
            let width = |depth: usize| self.levels[depth].width;
            let above = depths.iter().filter(|&&other| other < depth).max();
            let step = total / width(depth);
            if step == 0 {
                let expected = "types of objects that contain those numbered";
                return Err(wrong(word, expected));
            }
            let count = width(depth) / width(above.copied().unwrap_or(0));
            Ok(Loop { step, count })
        };
        depths.iter().map(a_loop).collect()
    }
}

/// `0,4,2,6`.
fn listed(word: &Word, total: usize) -> Result<Vec<usize>, MachineError> {
    let numbers: Option<Vec<usize>> = word.text.split(',').map(|part| part.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == total);
    numbers.ok_or_else(|| wrong(word, &format!("{total} numbers with commas between them")))
}

/// `4*2:1*4`.
fn written_loops(word: &Word) -> Result<Vec<Loop>, MachineError> {
    let a_loop = |part: &str| {
        let (step, count) = part.split_once('*')?;
        let number = |text: &str| text.parse().ok().filter(|&number| number >= 1);
        Some(Loop {
            step: number(step)?,
            count: number(count)?,
        })
    };
    let loops: Option<Vec<Loop>> = word.text.split(':').map(a_loop).collect();
    loops.ok_or_else(|| wrong(word, "loops STEP*COUNT with ':' between them"))
}

fn interleaved(word: &Word, loops: &[Loop], total: usize) -> Result<Vec<usize>, MachineError> {
    let mut numbers = vec![0; total];
    let mut weight = 1;
    for Loop { step, count } in loops {
        for (place, number) in numbers.iter_mut().enumerate() {
            *number += place / step % count * weight;
        }
        // The product of all counts is the total.
        weight *= count;
    }
    let mut seen = vec![false; total];
    for &number in &numbers {
        match seen.get_mut(number) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(wrong(word, "loops that give each number once")),
        }
    }
    Ok(numbers)
}
