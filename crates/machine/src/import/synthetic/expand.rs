//! From levels to objects.

use super::*;

/// The objects of the string.
pub(super) fn expand(description: &Description) -> Result<Objects, MachineError> {
    let mut objects = Objects::default();
    let note = "a synthetic string names no architecture: x86 is assumed";
    objects.notes.push(note.to_owned());
    let bottom = &description.levels[description.levels.len() - 1];
    let cpus = cpus(description, bottom)?;
    for level in &description.levels {
        let numbers = description.numbers(&level.indexes, level.width)?;
        let Some(Type::Known(kind)) = level.kind else {
            continue;
        };
        let each = cpus.len() / level.width;
        let within = numbers.iter().zip(cpus.chunks(each));
        for (at, (number, within)) in within.enumerate() {
            let os_index = if kind == Kind::Pu {
                cpus[at].index()
            } else {
                *number
            };
            objects.list.push(Object {
                kind,
                cpus: within.iter().copied().collect(),
                os_index: Some(os_index),
                place: level.place,
            });
        }
    }
    attach(description, &cpus, &mut objects)?;
    objects.complete = cpus.iter().copied().collect();
    Ok(objects)
}

/// The PUs' CPUs in the order in which they stand.
fn cpus(description: &Description, level: &Level) -> Result<Vec<CpuId>, MachineError> {
    let numbers = description.numbers(&level.indexes, level.width)?;
    let mut seen = CpuMask::EMPTY;
    let cpu = |number: usize| {
        if number >= MAX_CPUS || seen.contains(CpuId::from_index(number)) {
            let expected = format!("CPUs below {MAX_CPUS}, each once, not {number}");
            return Err(wrong(&description.word(level), &expected));
        }
        let cpu = CpuId::from_index(number);
        seen.set(cpu);
        Ok(cpu)
    };
    numbers.into_iter().map(cpu).collect()
}

/// Adds the attached nodes. They are numbered as the walk over the tree leaves their objects, those
/// within an object before its own.
fn attach(
    description: &Description,
    cpus: &[CpuId],
    objects: &mut Objects,
) -> Result<(), MachineError> {
    let levels = &description.levels;
    let total = levels
        .iter()
        .map(|level| level.width * level.attached)
        .sum();
    let numbers = description.numbers(&description.attached_indexes, total)?;
    let mut numbers = numbers.into_iter();
    for end in 1..=cpus.len() {
        // With its last PU the walk leaves an object, the lowest first.
        for level in levels.iter().rev() {
            let each = cpus.len() / level.width;
            if !end.is_multiple_of(each) {
                continue;
            }
            let numbers = numbers.by_ref().take(level.attached);
            objects.list.extend(numbers.map(|number| Object {
                kind: Kind::Node,
                cpus: cpus[end - each..end].iter().copied().collect(),
                os_index: Some(number),
                place: level.place,
            }));
        }
    }
    Ok(())
}
