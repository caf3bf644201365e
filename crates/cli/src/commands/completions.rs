//! `sabir completions`: the scripts of clap, and the names of tools, which only the server knows.

use std::io::{self, Write as _};

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::Shell;

use crate::args::Args;
use crate::clients::Client;

/// The words are read from the line: bash takes URLs apart.
const BASH: &str = r#"
_sabir_tools() {
    local line=${COMP_LINE:0:COMP_POINT} words
    read -a words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=('')
    if [[ ${#words[@]} -eq 4 && ${words[1]} == call && ${words[2]} != -* ]]; then
        local tools
        tools=$("${words[0]/#\~/$HOME}" list --names "${words[2]/#\~/$HOME}" 2>/dev/null)
        COMPREPLY=($(compgen -W "$tools" -- "${words[3]}"))
    else
        _sabir "$@"
    fi
}
complete -F _sabir_tools -o nosort -o bashdefault -o default sabir
"#;

const ZSH: &str = r#"
_sabir() {
    if (( CURRENT == 4 )) && [[ $words[2] == call && $words[3] != -* ]]; then
        local -a tools
        tools=(${(f)"$(_call_program tools $words[1] list --names $words[3] 2>/dev/null)"})
        compadd -a tools
    else
        _sabir_words "$@"
    fi
}
"#;

/// The script of clap completes no positional arguments.
const FISH: &str = r#"
function __fish_sabir_needs_client
    set -l words (commandline -opc)
    test (count $words) -eq 2; and contains -- $words[2] install uninstall import
end
function __fish_sabir_needs_tool
    set -l words (commandline -opc)
    test (count $words) -eq 3; and test $words[2] = call
end
function __fish_sabir_tools
    set -l words (commandline -opc)
    $words[1] list --names $words[3] 2>/dev/null
end
complete -c sabir -n __fish_sabir_needs_client -f -a "CLIENTS"
complete -c sabir -n __fish_sabir_needs_tool -f -a "(__fish_sabir_tools)"
"#;

pub(crate) fn run(shell: Shell) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "sabir", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Fish => {
            let clients: Vec<_> = Client::value_variants().iter().map(|one| one.name()).collect();
            format!("{script}{}", FISH.replace("CLIENTS", &clients.join(" ")))
        }
        // The file is a function itself, which the shell calls by the name of the file.
        Shell::Zsh => match script.rsplit_once("\nif [ \"$funcstack[1]\"") {
            Some((functions, last)) => {
                let functions = functions.replacen("\n_sabir() {", "\n_sabir_words() {", 1);
                format!("{functions}\n{ZSH}\nif [ \"$funcstack[1]\"{last}")
            }
            None => script.into_owned(),
        },
        _ => script.into_owned(),
    };
    io::stdout().write_all(script.as_bytes())
}
