import { allCommands, type CompletionCommand, type CompletionValue } from './tree.js';

/** The completion of bash, 3.2 and later. */
export function bashCompletion(root: CompletionCommand): string {
  const commands = allCommands(root);
  return `# Completion of ${root.name} for bash: eval "$(${root.name} completion bash)"
_${root.name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="" index words=""
  # --flag=value comes as three words.
  if [[ $current == "=" ]]; then current=""
  elif [[ $previous == "=" ]]; then previous="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$command \${COMP_WORDS[index]}" in
${commands.flatMap(({ path, commands: below }) => below.map((one) => `      "${path} ${one.name}") command="${one.path}" ;;`)).join('\n')}
    esac
  done
  COMPREPLY=()
  case "$command $previous" in
${commands.flatMap(valueCases).join('\n')}
  esac
  case "$command" in
${commands.map(wordCase).join('\n')}
  esac
}
_${root.name}_words() {
  local IFS=$' \\t\\n'
  COMPREPLY=($(compgen -W "$1" -- "$2"))
}
_${root.name}_files() {
  local IFS=$'\\n'
  compopt -o filenames 2> /dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}
complete -F _${root.name} ${root.name}
`;
}

/** Cases for the values of options. */
function valueCases({ path, options }: CompletionCommand): string[] {
  return options.flatMap(({ long, short, value }) => {
    if (value === null) return [];
    const names = [long, ...(short === null ? [] : [short])].map((name) => `"${path} ${name}"`);
    return [`    ${names.join('|')}) ${completed(value)} return ;;`];
  });
}

function completed({ values, isFile }: CompletionValue): string {
  if (values.length > 0) return `_skein_words "${values.join(' ')}" "$current";`;
  return isFile ? '_skein_files "$current";' : '';
}

/** Case for a word: options after a dash, else commands or arguments. */
function wordCase({ path, options, commands, argument }: CompletionCommand): string {
  const flags = options.flatMap(({ long, short }) => (short === null ? [long] : [long, short]));
  const words = [...commands.map(({ name }) => name), ...argument.values];
  const others = words.length > 0 ? `_skein_words "${words.join(' ')}" "$current"` : ':';
  return `    "${path}")
      if [[ $current == -* ]]; then _skein_words "${flags.join(' ')}" "$current"
      else ${words.length === 0 && argument.isFile ? '_skein_files "$current"' : others}; fi ;;`;
}
