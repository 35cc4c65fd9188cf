//! What tbench's clients ask for: the operations of dbench 4.0's load file `client.txt`, by how often each
//! stands there and how many bytes it sends and expects (`sockio.c`).
//!
//! The file is a recording of 458,341 operations of one client. Here each is drawn by its share of the file,
//! so that the mix of sizes is the file's and the order is not. Reads and writes have the file's five most
//! frequent sizes each; all other sizes count with their mean. Names of files vary by some bytes and count with
//! their mean, too.

use wakelab_sim::rng::Rng;

/// One operation: bytes sent, bytes expected, and bytes of data that count for the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of the request, its header included.
    pub send: u32,
    /// Of the response.
    pub expect: u32,
    /// Of file data in either.
    pub data: u32,
}

/// How often it stands in the file, and what it is.
const OPERATIONS: &[(u32, Request)] = &[
    // ReadX
    (83_172, read(4096)),
    (16_641, read(61_440)),
    (13_161, read(2257)),
    (4644, read(2048)),
    (4644, read(8192)),
    (1937, read(16_384)),
    // NTCreateX
    (79_230, plain(151, 87)),
    // QUERY_PATH_INFORMATION
    (71_814, plain(135, 71)),
    // Close
    (58_200, plain(47, 39)),
    // WriteX
    (12_658, write(65_536)),
    (9942, write(4096)),
    (7424, write(1)),
    (6637, write(19_997)),
    (1677, write(2048)),
    (1164, write(8192)),
    // FIND_FIRST: nothing found, and the rest
    (14_328, plain(114, 39)),
    (13_437, plain(114, 1027)),
    // Unlink
    (16_000, plain(123, 39)),
    // QUERY_FS_INFORMATION, QUERY_FILE_INFORMATION
    (25_753, plain(59, 71)),
    // SET_FILE_INFORMATION
    (6454, plain(71, 47)),
    // Flush
    (5553, plain(41, 39)),
    // Rename
    (3355, plain(210, 39)),
    // LockX, UnlockX
    (516, plain(51, 39)),
];

const fn plain(send: u32, expect: u32) -> Request {
    Request {
        send,
        expect,
        data: 0,
    }
}

const fn read(bytes: u32) -> Request {
    Request {
        send: 59,
        expect: 59 + bytes,
        data: bytes,
    }
}

const fn write(bytes: u32) -> Request {
    Request {
        send: 59 + bytes,
        expect: 55,
        data: bytes,
    }
}

const fn total() -> u32 {
    let (mut sum, mut at) = (0, 0);
    while at < OPERATIONS.len() {
        sum += OPERATIONS[at].0;
        at += 1;
    }
    sum
}

/// Operations in the file.
const TOTAL: u32 = total();

/// An operation, each as likely as it is frequent in the file.
pub fn draw(rng: &mut Rng) -> Request {
    let mut place = rng.below(TOTAL.into()) as u32;
    for &(count, request) in OPERATIONS {
        match place.checked_sub(count) {
            None => return request,
            Some(rest) => place = rest,
        }
    }
    unreachable!("a number below the sum of all")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted in the file: 458,341 operations that move 2,488,062,937 bytes of data.
    #[test]
    fn the_mix_is_the_load_files() {
        assert_eq!(TOTAL, 458_341);
        let data: u64 = OPERATIONS
            .iter()
            .map(|&(count, request)| u64::from(count) * u64::from(request.data))
            .sum();
        assert!(data.abs_diff(2_488_062_937) < 10_000, "{data}");
    }

    #[test]
    fn each_is_drawn_as_often_as_it_stands_there() {
        let mut rng = Rng::stream(1, 2);
        let draws = 1_000_000;
        let pages = (0..draws).filter(|_| draw(&mut rng).data == 4096).count();
        let expected = (83_172.0 + 9942.0) / 458_341.0;
        assert!((pages as f64 / f64::from(draws) / expected - 1.0).abs() < 0.01);
    }
}
