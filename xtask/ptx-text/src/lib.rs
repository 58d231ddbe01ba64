//! Reading and editing PTX text: entry points, register caps, counts of instructions.

/// State spaces that an instruction may name; a memory access without a state space is generic.
const SPACES: [&str; 5] = ["global", "shared", "local", "const", "param"];

/// Single `.entry` of a PTX file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PtxEntry<'a> {
    /// Name of the entry point.
    pub name: &'a str,
    /// Byte position of the `{` that opens the body.
    pub open: usize,
    /// Text between the braces.
    pub body: &'a str,
}

/// Returns all entry points, in the order of the text.
pub fn entries(ptx: &str) -> Vec<PtxEntry<'_>> {
    const KEYWORD: &str = ".entry ";
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = ptx[at..].find(KEYWORD) {
        let start = at + offset + KEYWORD.len();
        let Some(open) = ptx[start..].find('{').map(|o| start + o) else {
            break;
        };
        let Some(length) = ptx[open..].char_indices().scan(0i32, count_braces).position(|depth| depth == 0) else {
            break;
        };
        let head = &ptx[start..open];
        let name = head.split(|c: char| c == '(' || c.is_whitespace()).find(|word| !word.is_empty()).unwrap_or("");
        // Positions count characters, which are bytes: PTX is ASCII.
        found.push(PtxEntry { name, open, body: &ptx[open + 1..open + length] });
        at = open + length;
    }
    found
}

fn count_braces(depth: &mut i32, (_, c): (usize, char)) -> Option<i32> {
    *depth += i32::from(c == '{') - i32::from(c == '}');
    Some(*depth)
}

/// Writes `.maxnreg` into each entry for which `cap` returns a number of registers.
///
/// The directive follows the parameter list and precedes the body, where PTX expects performance directives.
pub fn with_register_caps(ptx: &str, cap: impl Fn(&str) -> Option<u32>) -> String {
    let mut text = String::with_capacity(ptx.len() + 1024);
    let mut copied = 0;
    for entry in entries(ptx) {
        if let Some(registers) = cap(entry.name) {
            text.push_str(&ptx[copied..entry.open]);
            text.push_str(&format!(".maxnreg {registers}\n"));
            copied = entry.open;
        }
    }
    text.push_str(&ptx[copied..]);
    text
}

/// Counts of an entry's instructions that affect its speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstructionCounts {
    /// Number of fused multiply-adds.
    pub fma: u32,
    /// Number of `ld.local` and `st.local` instructions.
    pub local: u32,
    /// Number of loads, stores and atomics that name no state space, so that the hardware must determine it at run
    /// time.
    pub generic: u32,
    /// Number of calls of functions that were not inlined.
    pub calls: u32,
    /// Number of barriers of the block; more than in the source means that a branch was duplicated around one.
    pub barriers: u32,
}

/// Counts the instructions of an entry's body.
pub fn count(body: &str) -> InstructionCounts {
    let mut counts = InstructionCounts::default();
    let code = body.lines().map(|line| line.split("//").next().unwrap_or(""));
    for statement in code.flat_map(|line| line.split([';', '{', '}'])) {
        let words = statement.split_whitespace();
        let Some(opcode) = words.into_iter().find(|word| !word.starts_with('@') && !word.ends_with(':')) else {
            continue;
        };
        let mut parts = opcode.split('.');
        let operation = parts.next().unwrap_or("");
        match operation {
            "fma" => counts.fma += 1,
            "call" => counts.calls += 1,
            "bar" | "barrier" => counts.barriers += 1,
            "ld" | "st" | "atom" | "red" => {
                // "shared::cta" and "param::entry" are spaces too.
                match parts.filter_map(|part| part.split("::").next()).find(|part| SPACES.contains(part)) {
                    None => counts.generic += 1,
                    Some("local") => counts.local += 1,
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 8.0
.target sm_80
.extern .shared .align 16 .b8 dsm[];
.visible .entry axpy(
\t.param .align 8 .b8 axpy_param_0[24],
\t.param .u32 axpy_param_1
)
{
\t.reg .b32 %r<4>;
\tld.param.b32 %r1, [axpy_param_1];
\t@%p1 bra $L__BB0_2;
\t// begin inline asm
\tld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
\t// end inline asm
\tfma.rn.f32 %f5, %f1, %f2, %f3; // not fma.rn
$L__BB0_2: ld.v4.b32 {%r1, %r2, %r3, %r4}, [%rd2];
\t{ // callseq 0, 0
\tst.param.b64 [param0], %rd3;
\tcall.uni panic, (param0);
\t} // callseq 0
\tst.local.b32 [%rd3], %r1;
\tatom.add.f64 %fd1, [%rd4], %fd2;
\tatom.shared::cta.add.f32 %f1, [%rd4], %f2;
\tbar.sync 0;
\tret;
}
\t// .globl sum
.visible .entry sum()
.maxntid 256
{
\tret;
}
";

    #[test]
    fn finds_entries() {
        let found = entries(PTX);
        assert_eq!(found.iter().map(|e| e.name).collect::<Vec<_>>(), ["axpy", "sum"]);
        assert_eq!(found[1].body.trim(), "ret;");
        assert!(found[0].body.trim_end().ends_with("ret;"));
        assert_eq!(entries(".version 8.0\n"), []);
    }

    #[test]
    fn caps_stand_before_the_body() {
        let text = with_register_caps(PTX, |name| (name == "sum").then_some(64));
        assert!(text.contains(".entry sum()\n.maxntid 256\n.maxnreg 64\n{\n\tret;\n}\n"), "{text}");
        assert_eq!(text.matches(".maxnreg").count(), 1);
        assert_eq!(with_register_caps(PTX, |_| None), PTX);
        assert!(with_register_caps(PTX, |_| Some(96)).contains("axpy_param_1\n)\n.maxnreg 96\n{\n"));
    }

    #[test]
    fn counts_instructions() {
        let counts = count(entries(PTX)[0].body);
        assert_eq!(counts, InstructionCounts { fma: 1, local: 1, generic: 2, calls: 1, barriers: 1 });
    }
}
