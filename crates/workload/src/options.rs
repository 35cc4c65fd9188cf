//! Command lines read as `getopt_long` reads them: `-g 32`, `-g32`, `-pTg 32`, `--groups 32`,
//! `--groups=32`.

use crate::command_line::WorkloadError;

/// What an option takes, and what becomes of it.
pub(crate) enum Takes<T> {
    /// No value.
    Nothing(fn(&mut T)),
    /// A whole number.
    Number {
        low: u64,
        high: u64,
        set: fn(&mut T, u64),
    },
    /// A value in a syntax of its own; `set` gives none if it does not follow it.
    Text {
        expected: &'static str,
        set: fn(&mut T, &str) -> Option<()>,
    },
}

/// An option.
pub(crate) struct Opt<T> {
    /// The letter; `\0` if it has none.
    pub short: char,
    /// The word; empty if it has none.
    pub long: &'static str,
    pub takes: Takes<T>,
}

/// The options of a benchmark.
pub(crate) struct Grammar<T: 'static> {
    /// The benchmark, for errors.
    pub benchmark: &'static str,
    /// What it takes, for errors.
    pub expected: &'static str,
    pub options: &'static [Opt<T>],
}

impl<T> Grammar<T> {
    /// Reads the words after the benchmark's name into `settings`, which holds the defaults.
    pub fn read<'a>(
        &self,
        mut settings: T,
        mut words: impl Iterator<Item = &'a str>,
    ) -> Result<T, WorkloadError> {
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--") {
                self.read_long(&mut settings, word, long, &mut words)?;
            } else if let Some(cluster) = word.strip_prefix('-').filter(|c| !c.is_empty()) {
                self.read_cluster(&mut settings, word, cluster, &mut words)?;
            } else {
                return Err(self.unknown(word));
            }
        }
        Ok(settings)
    }

    fn unknown(&self, word: &str) -> WorkloadError {
        WorkloadError::Option {
            benchmark: self.benchmark,
            word: word.to_owned(),
            expected: self.expected,
        }
    }

    /// `--groups 32`, `--groups=32`.
    fn read_long<'a>(
        &self,
        settings: &mut T,
        word: &str,
        long: &'a str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), WorkloadError> {
        let (name, given) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        // An option without a long name has an empty one.
        let known = |option: &&Opt<T>| option.long == name && !name.is_empty();
        let option = self.options.iter().find(known);
        match &option.ok_or_else(|| self.unknown(word))?.takes {
            Takes::Nothing(_) if given.is_some() => Err(self.unknown(word)),
            Takes::Nothing(set) => {
                set(settings);
                Ok(())
            }
            takes => {
                let value = given.or_else(|| words.next());
                self.set(settings, &format!("--{name}"), takes, value)
            }
        }
    }

    /// `-g 32`, `-g32`, `-pTg 32`.
    fn read_cluster<'a>(
        &self,
        settings: &mut T,
        word: &str,
        cluster: &'a str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), WorkloadError> {
        for (at, letter) in cluster.char_indices() {
            let option = self.options.iter().find(|option| option.short == letter);
            match &option.ok_or_else(|| self.unknown(word))?.takes {
                Takes::Nothing(set) => set(settings),
                takes => {
                    let rest = &cluster[at + letter.len_utf8()..];
                    let value = if rest.is_empty() {
                        words.next()
                    } else {
                        Some(rest)
                    };
                    return self.set(settings, &format!("-{letter}"), takes, value);
                }
            }
        }
        Ok(())
    }

    fn set(
        &self,
        settings: &mut T,
        option: &str,
        takes: &Takes<T>,
        value: Option<&str>,
    ) -> Result<(), WorkloadError> {
        let value = value.ok_or_else(|| WorkloadError::MissingValue {
            benchmark: self.benchmark,
            option: option.to_owned(),
            expected: match takes {
                Takes::Text { expected, .. } => expected,
                _ => "a number",
            },
        })?;
        match takes {
            Takes::Nothing(set) => set(settings),
            Takes::Number { low, high, set } => {
                set(settings, self.number(option, value, *low, *high)?);
            }
            Takes::Text { expected, set } => {
                set(settings, value).ok_or_else(|| WorkloadError::Value {
                    benchmark: self.benchmark,
                    option: option.to_owned(),
                    value: value.to_owned(),
                    expected,
                })?;
            }
        }
        Ok(())
    }

    /// A whole number within its bounds.
    pub fn number(
        &self,
        option: &str,
        value: &str,
        low: u64,
        high: u64,
    ) -> Result<u64, WorkloadError> {
        let number = value
            .parse::<u64>()
            .map_err(|_| WorkloadError::NotANumber {
                benchmark: self.benchmark,
                option: option.to_owned(),
                value: value.to_owned(),
            })?;
        if (low..=high).contains(&number) {
            return Ok(number);
        }
        Err(WorkloadError::Range {
            benchmark: self.benchmark,
            option: option.to_owned(),
            value: number,
            low,
            high,
        })
    }
}

/// The most tasks of a workload.
pub(crate) const MAX_TASKS: u64 = 65_536;

/// Refuses a workload of more tasks than can be simulated.
pub(crate) fn check_tasks(benchmark: &'static str, tasks: u64) -> Result<(), WorkloadError> {
    if tasks <= MAX_TASKS {
        return Ok(());
    }
    Err(WorkloadError::TooMuch {
        benchmark,
        what: "the number of tasks",
        value: tasks.into(),
        limit: MAX_TASKS.into(),
    })
}
