//! Rankings of four choices, A to D, as a question with an ordered answer: how an answer is read, Kendall's tau
//! against the gold order, and the final score. An answer that is no ranking scores 0, below every ranking but the
//! exact reverse. It must not know where the text came from.

/// An order of the four letters, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranking([u8; 4]);

impl Ranking {
    /// Reads an order written as letters, upper or lower case, between which commas, semicolons, `>` and white space
    /// may stand: `C, A, D, B`, `CADB`, `c > a > d > b`. None unless each of A, B, C and D occurs exactly once and
    /// nothing else does.
    pub fn parse(text: &str) -> Option<Self> {
        let mut order = [0; 4];
        let mut found = 0;
        for letter in text
            .chars()
            .filter(|c| !matches!(c, ',' | ';' | '>') && !c.is_whitespace())
        {
            let letter = match letter.to_ascii_uppercase() {
                'A' => 0,
                'B' => 1,
                'C' => 2,
                'D' => 3,
                _ => return None,
            };
            if found == 4 || order[..found].contains(&letter) {
                return None;
            }
            order[found] = letter;
            found += 1;
        }
        (found == 4).then_some(Self(order))
    }

    fn place(self, letter: u8) -> usize {
        self.0
            .iter()
            .position(|&other| other == letter)
            .expect("a ranking holds each letter")
    }

    /// Kendall's tau against another order, in [-1, 1]: (agreeing - disagreeing pairs) / 6.
    pub fn kendall_tau(self, other: Self) -> f64 {
        let mut balance = 0_i32;
        for (place, &letter) in self.0.iter().enumerate() {
            for &later in &self.0[place + 1..] {
                balance += if other.place(letter) < other.place(later) {
                    1
                } else {
                    -1
                };
            }
        }
        f64::from(balance) / 6.0
    }
}

/// Final score of an answer, in [0, 100]: 50 (1 + tau). A refused or invalid ranking (none) scores 0, not the 50 that
/// a tau of 0 would earn.
pub fn ranking_score(gold: Ranking, answer: Option<Ranking>) -> f64 {
    answer.map_or(0.0, |answer| 50.0 * (1.0 + gold.kendall_tau(answer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_orders_and_refuses_everything_else() {
        let gold = Ranking::parse("C,A,D,B").unwrap();
        for same in ["CADB", " c > a > d > b\n", "C; A; D; B"] {
            assert_eq!(Ranking::parse(same), Some(gold), "{same}");
        }
        for bad in [
            "",
            "A,A,B,C",
            "ABCDE",
            "ABC",
            "ABCDA",
            "A,B,C,E",
            "the order is CADB",
            "ÀBCD",
        ] {
            assert_eq!(Ranking::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn tau_is_symmetric_and_counts_swaps() {
        let orders = ["ABCD", "BACD", "DCBA", "CADB"].map(|text| Ranking::parse(text).unwrap());
        for a in orders {
            assert_eq!(a.kendall_tau(a), 1.0);
            for b in orders {
                assert_eq!(a.kendall_tau(b), b.kendall_tau(a));
            }
        }
        assert_eq!(ranking_score(orders[0], Some(orders[2])), 0.0);
        assert_eq!(ranking_score(orders[0], Some(orders[0])), 100.0);
    }
}
