//! Fenced blocks of a page of the book, with the comments before them.

use anyhow::{Result, bail};

/// Fenced block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedBlock {
    /// Line at which the text of the block begins, from 1.
    pub line: usize,
    /// Language after the fence: `sh`, `console`, `toml` …, or empty.
    pub language: String,
    /// Lines of the block.
    pub text: String,
    /// Instructions in the comments before the block.
    pub marks: Marks,
}

/// Instructions in comments for the block that follows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// `<!-- not run: REASON -->`: the reason why the block is not run.
    pub not_run: Option<String>,
    /// `<!-- fails: CODE -->`: the exit code with which the block has to end.
    pub fails: Option<i32>,
    /// `<!-- file: NAME -->`: the file to which the block is written.
    pub file: Option<String>,
    /// `<!-- run: COMMAND -->`: the command that tries a file of commands.
    pub run: Option<String>,
}

/// Returns all blocks of a page.
pub fn blocks(text: &str) -> Result<Vec<FencedBlock>> {
    let mut blocks = Vec::new();
    let mut marks = Marks::default();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")) {
            mark(&mut marks, comment.trim(), number + 1)?;
        } else if line.starts_with("```") {
            let language = line.trim_start_matches('`');
            let fence = &line[..line.len() - language.len()];
            let mut body = String::new();
            loop {
                match lines.next() {
                    Some((_, end)) if end.trim() == fence => break,
                    Some((_, inside)) => body = body + inside + "\n",
                    None => bail!("line {}: this block is not closed", number + 1),
                }
            }
            let language = language.trim().to_string();
            blocks.push(FencedBlock { line: number + 2, language, text: body, marks: std::mem::take(&mut marks) });
        } else if !line.is_empty() {
            // A comment applies only to the block right after it.
            marks = Marks::default();
        }
    }
    Ok(blocks)
}

fn mark(marks: &mut Marks, comment: &str, line: usize) -> Result<()> {
    let Some((word, rest)) = comment.split_once(':') else { return Ok(()) };
    let rest = rest.trim();
    match word.trim() {
        "not run" if rest.is_empty() => bail!("line {line}: `not run` needs a reason"),
        "not run" => marks.not_run = Some(rest.to_string()),
        "fails" => match rest.parse() {
            Ok(code) => marks.fails = Some(code),
            Err(_) => bail!("line {line}: `fails` needs an exit code, not '{rest}'"),
        },
        "file" if rest.is_empty() || rest.starts_with('/') || rest.contains("..") => {
            bail!("line {line}: `file` needs a name inside the page's folder")
        }
        "file" => marks.file = Some(rest.to_string()),
        "run" => marks.run = Some(rest.to_string()),
        _ => {}
    }
    Ok(())
}

impl FencedBlock {
    /// Returns the commands as a script. For `console` these are the lines with a prompt, and those that continue them.
    pub fn script(&self) -> String {
        if self.language != "console" {
            return self.text.clone();
        }
        let (mut script, mut continued) = (String::new(), false);
        for line in self.text.lines() {
            let command = line.strip_prefix("$ ").or(continued.then_some(line));
            if let Some(command) = command {
                script = script + command + "\n";
            }
            continued = command.is_some_and(|command| command.ends_with('\\'));
        }
        script
    }
    /// Returns the lines of output that a `console` block shows, without those that mark omitted lines.
    pub fn shown(&self) -> Vec<&str> {
        let (mut shown, mut continued) = (Vec::new(), false);
        for line in self.text.lines().filter(|_| self.language == "console") {
            let command = continued || line.starts_with("$ ");
            if !command && !matches!(line.trim(), "" | "…") {
                shown.push(line);
            }
            continued = command && line.ends_with('\\');
        }
        shown
    }
    /// Returns a line that looks like a command in a block without a language.
    pub fn stray_command(&self) -> Option<&str> {
        let starts = ["$ ", "ferrite ", "ferrite-studies ", "cargo ", "mpirun ", "srun ", "sbatch "];
        let bare = self.language.is_empty();
        self.text.lines().find(|line| bare && starts.iter().any(|start| line.starts_with(start)))
    }
}

/// Returns the commands of a script, split into words: continued lines are joined, comments dropped. Quotes are left as
/// they are.
pub fn commands(script: &str) -> Vec<Vec<String>> {
    let joined = script.replace("\\\n", " ");
    let mut all = Vec::new();
    for line in joined.lines() {
        let mut words = Vec::new();
        for word in line.split_whitespace().take_while(|word| !word.starts_with('#')) {
            // After one of these signs comes another command, or a file.
            let (word, ends) = match word.strip_suffix(';') {
                Some(word) => (word, true),
                None => (word, false),
            };
            if matches!(word, "|" | "&&" | "||" | ">" | ">>" | "<" | "do" | "then" | "&") {
                all.push(std::mem::take(&mut words));
                continue;
            }
            words.push(word.to_string());
            if ends {
                all.push(std::mem::take(&mut words));
            }
        }
        all.push(words);
    }
    all.retain(|words| !words.is_empty());
    all
}

/// Checks that the output contains all lines that are shown, in their order. Numbers are ignored, as they differ
/// between machines; `…` stands for anything. Returns the first line that is missing.
pub fn missing_line<'a>(shown: &[&'a str], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().map(without_numbers);
    shown.iter().copied().find(|line| {
        let wanted = without_numbers(line);
        !printed.any(|line| matches(&wanted, &line))
    })
}

/// Returns a line with one mark for each number and one space for each gap.
fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    let mut characters = line.trim().chars().peekable();
    while let Some(c) = characters.next() {
        if c.is_ascii_digit() {
            let exponent = |last: char, next: char| {
                next.is_ascii_digit() || next == '.' || next == 'e' || (last == 'e' && matches!(next, '-' | '+'))
            };
            let mut last = c;
            while let Some(next) = characters.next_if(|next| exponent(last, *next)) {
                last = next;
            }
            // The sign of a number is part of it.
            if out.ends_with('-') {
                out.pop();
            }
            out.push('#');
        } else if !c.is_whitespace() {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

/// Returns whether a line matches a pattern with `…`.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
Text.

<!-- not run: needs a GPU -->
```sh
ferrite tune --lattice 8,8,8,16   # a comment
```
<!-- file: run.toml -->
<!-- run: ferrite check run.toml -->

```toml
mass = 0.1
```
<!-- fails: 2 -->
Text in between.
```console
$ ferrite verify \\
      a.ildg
a.ildg: in order
…
$ ferrite info
```
````
ferrite solve
```
````
";

    #[test]
    fn blocks_and_their_marks() {
        let blocks = blocks(PAGE).unwrap();
        let heads: Vec<_> = blocks.iter().map(|block| (block.line, block.language.as_str())).collect();
        assert_eq!(heads, [(5, "sh"), (11, "toml"), (16, "console"), (23, "")]);
        assert_eq!(blocks[0].marks.not_run.as_deref(), Some("needs a GPU"));
        assert_eq!(blocks[1].marks.file.as_deref(), Some("run.toml"));
        assert_eq!(blocks[1].marks.run.as_deref(), Some("ferrite check run.toml"));
        assert_eq!(blocks[2].marks, Marks::default(), "text stands between comment and block");
        assert_eq!(blocks[2].script(), "ferrite verify \\\n      a.ildg\nferrite info\n");
        assert_eq!(blocks[2].shown(), ["a.ildg: in order"]);
        assert_eq!(blocks[3].stray_command(), Some("ferrite solve"));
        assert_eq!(blocks[3].text, "ferrite solve\n```\n");
    }

    #[test]
    fn mistakes_have_their_line() {
        let why = |text: &str| blocks(text).unwrap_err().to_string();
        assert!(why("a\n```sh\nls\n").contains("line 2"), "no end");
        assert!(why("<!-- not run: -->").contains("reason"));
        assert!(why("<!-- fails: often -->").contains("'often'"));
        assert!(why("<!-- file: ../run.toml -->").contains("inside"));
    }

    #[test]
    fn commands_are_distinguished() {
        let script = "# all\nferrite init rhmc > r.toml; ferrite rhmc r.toml \\\n  --out d   # runs\nls | wc\n";
        let words: Vec<String> = commands(script).iter().map(|words| words.join(" ")).collect();
        assert_eq!(words, ["ferrite init rhmc", "r.toml", "ferrite rhmc r.toml --out d", "ls", "wc"]);
    }

    #[test]
    fn output_is_compared_without_numbers() {
        let printed = "note: two\nBiCGstab, recon 12\ntrue residual 5.3e-11 (asked: 1e-10)\n 8 s on CPU, AVX-512\n";
        let missing = |shown: &[&'static str]| missing_line(shown, printed);
        assert_eq!(missing(&["BiCGstab, recon 18", "true residual 4.91e-9 (asked: 1e-8)", "0.25 s on …"]), None);
        assert_eq!(missing(&["8 s on CPU, AVX-512", "note: two"]), Some("note: two"), "order counts");
        assert_eq!(missing(&["BiCGstab"]), Some("BiCGstab"));
        assert_eq!(missing(&["…residual…1e-10)", "8 s on … …"]), None);
        assert_eq!(missing(&["8 s on GPU, …"]), Some("8 s on GPU, …"));
        assert_eq!(without_numbers("x -1.5e-3,  y 2"), "x #, y #");
    }
}
