//! Numbers in the text form of OpenMetrics 1.0. Pure.
//!
//! Written here because half of the numbers are read from the database when somebody asks for them: a registry of counters
//! would first have to be told what is then read from it once.

use std::fmt::{Display, Write as _};

/// The media type of the text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long things took: how many up to each bound, and all together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// Upper bounds in seconds, each with how many took at most so long.
    pub up_to: Vec<(f64, u64)>,
    /// How many there were.
    pub count: u64,
    /// Seconds in all.
    pub sum: f64,
}

/// A text that grows metric by metric.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// A number that goes up and down; one line for each set of labels.
    pub fn gauge<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<(&'a str, String)>, V)>,
    ) {
        self.head(name, "gauge", help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// A number that only grows. The name is that of the family, without `_total`.
    pub fn counter<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<(&'a str, String)>, V)>,
    ) {
        self.head(name, "counter", help);
        for (labels, value) in samples {
            self.sample(&format!("{name}_total"), &labels, value);
        }
    }

    /// Facts as labels of a number that is always 1. The name is that of the family, without `_info`.
    pub fn info(&mut self, name: &str, help: &str, labels: &[(&str, String)]) {
        self.head(name, "info", help);
        self.sample(&format!("{name}_info"), labels, 1);
    }

    /// How long things took.
    pub fn histogram(&mut self, name: &str, help: &str, distribution: &Distribution) {
        self.head(name, "histogram", help);
        for (bound, n) in &distribution.up_to {
            self.sample(&format!("{name}_bucket"), &[("le", format!("{bound:?}"))], n);
        }
        self.sample(&format!("{name}_bucket"), &[("le", "+Inf".to_owned())], distribution.count);
        self.sample(&format!("{name}_count"), &[], distribution.count);
        self.sample(&format!("{name}_sum"), &[], distribution.sum);
    }

    /// The whole text.
    #[must_use]
    pub fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}\n# HELP {name} {}", escaped(help));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, String)], value: impl Display) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let pairs: Vec<_> = labels.iter().map(|(key, word)| format!("{key}=\"{}\"", escaped(word))).collect();
            let _ = write!(self.0, "{{{}}}", pairs.join(","));
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// Text that may hold anything, as it may stand in a line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_number_is_written_as_the_format_wants_it() {
        let mut text = Exposition::default();
        text.gauge("a_bytes", "Room.", [(vec![("table", "ev\"e\\n\nt".to_owned())], 7)]);
        text.counter("b", "Looks.", [(Vec::new(), 3)]);
        text.info("c_build", "Which.", &[("version", "1".to_owned())]);
        let took = Distribution { up_to: vec![(0.005, 1), (1.0, 2)], count: 3, sum: 4.5 };
        text.histogram("d_seconds", "How long.", &took);
        assert_eq!(
            text.end(),
            "# TYPE a_bytes gauge\n# HELP a_bytes Room.\na_bytes{table=\"ev\\\"e\\\\n\\nt\"} 7\n\
             # TYPE b counter\n# HELP b Looks.\nb_total 3\n\
             # TYPE c_build info\n# HELP c_build Which.\nc_build_info{version=\"1\"} 1\n\
             # TYPE d_seconds histogram\n# HELP d_seconds How long.\n\
             d_seconds_bucket{le=\"0.005\"} 1\nd_seconds_bucket{le=\"1.0\"} 2\nd_seconds_bucket{le=\"+Inf\"} 3\n\
             d_seconds_count 3\nd_seconds_sum 4.5\n# EOF\n"
        );
    }
}
