import { allCommands, type CompletionCommand, type CompletionValue } from './tree.js';

/** The completion of fish: skein completion fish > ~/.config/fish/completions/skein.fish */
export function fishCompletion(root: CompletionCommand): string {
  const commands = allCommands(root);
  return `# Completion of ${root.name} for fish: ${root.name} completion fish | source
function __${root.name}_at
    set -l command ''
    set -l words (commandline -opc)
    for word in $words[2..]
        switch "$command $word"
${commands.flatMap(({ path, commands: below }) => below.map((one) => `            case ${quoted(`${path} ${one.name}`)}\n                set command ${quoted(one.path)}`)).join('\n')}
        end
    end
    test "$command" = "$argv[1]"
end
complete -c ${root.name} -f
${commands.flatMap((command) => linesOf(root.name, command)).join('\n')}
`;
}

function linesOf(program: string, { path, options, commands, argument }: CompletionCommand): string[] {
  const here = `complete -c ${program} -n ${quoted(`__${program}_at ${quoted(path)}`)}`;
  const values = argument.values.length > 0 || argument.isFile ? [`${here} ${completed(argument)}`] : [];
  return [
    ...commands.map(({ name, description }) => `${here} -a ${name} -d ${quoted(description)}`),
    ...values,
    ...options.map(({ long, short, description, value }) => {
      const letter = short === null ? '' : ` -s ${short.slice(1)}`;
      const takes = value === null ? '' : ` -r ${completed(value)}`;
      return `${here} -l ${long.slice(2)}${letter}${takes} -d ${quoted(description)}`;
    }),
  ];
}

function completed({ values, isFile }: CompletionValue): string {
  if (values.length > 0) return `-f -a ${quoted(values.join(' '))}`;
  return isFile ? '-F' : '-f';
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
