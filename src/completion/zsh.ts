import { allCommands, type CompletionCommand, type CompletionValue } from './tree.js';

/** The completion of zsh: eval'd, or as a file _skein in a folder of $fpath. */
export function zshCompletion(root: CompletionCommand): string {
  const commands = allCommands(root);
  return `#compdef ${root.name}
# Completion of ${root.name} for zsh: eval "$(${root.name} completion zsh)", after compinit
_${root.name}() {
  local command="" previous="\${words[CURRENT-1]}"
  local -a entries
  integer index
  for ((index = 2; index < CURRENT; index++)); do
    case "$command \${words[index]}" in
${commands.flatMap(({ path, commands: below }) => below.map((one) => `      "${path} ${one.name}") command="${one.path}" ;;`)).join('\n')}
    esac
  done
  # --flag=value is one word.
  if [[ "\${words[CURRENT]}" == --*=* ]]; then
    previous="\${words[CURRENT]%%=*}"
    compset -P '*='
  fi
  case "$command $previous" in
${commands.flatMap(valueCases).join('\n')}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    case "$command" in
${commands.map(optionCase).join('\n')}
    esac
    _describe -o option entries
    return
  fi
  case "$command" in
${commands.map(wordCase).join('\n')}
  esac
}
if [[ "\${funcstack[1]}" == "_${root.name}" ]]; then _${root.name} "$@"; else compdef _${root.name} ${root.name}; fi
`;
}

function valueCases({ path, options }: CompletionCommand): string[] {
  return options.flatMap(({ long, short, value }) => {
    if (value === null) return [];
    const names = [long, ...(short === null ? [] : [short])].map((name) => `"${path} ${name}"`);
    return [`    ${names.join('|')}) ${completed(value)}return ;;`];
  });
}

function completed({ values, isFile }: CompletionValue): string {
  if (values.length > 0) return `compadd -- ${values.join(' ')}; `;
  return isFile ? '_files; ' : '';
}

function optionCase({ path, options }: CompletionCommand): string {
  const entries = options.map(({ long, description }) => described(long, description));
  return `      "${path}") entries=(${entries.join(' ')}) ;;`;
}

function wordCase({ path, commands, argument }: CompletionCommand): string {
  if (commands.length > 0) {
    const entries = commands.map(({ name, description }) => described(name, description));
    return `    "${path}") entries=(${entries.join(' ')}); _describe command entries ;;`;
  }
  return `    "${path}") ${completed(argument)}:;;`.replace('; :;;', ' ;;');
}

/** Quoted NAME:TEXT for a list of descriptions. */
function described(name: string, text: string): string {
  return `'${`${name}:${text.replaceAll(':', '\\:')}`.replaceAll("'", "'\\''")}'`;
}
