import { Argument, Command } from 'commander';
import { helpBehind } from '../terminal/help.js';

const HELP = `
  bash   eval "$(skein completion bash)" in ~/.bashrc
  zsh    eval "$(skein completion zsh)" in ~/.zshrc, after compinit
  fish   skein completion fish > ~/.config/fish/completions/skein.fish
`;

export function completionCommand(): Command {
  const command = new Command('completion')
    .description('print a script that makes a shell complete commands, options and values')
    .addArgument(new Argument('<SHELL>', 'bash, zsh or fish').choices(['bash', 'zsh', 'fish']));
  return helpBehind(command, HELP).action(async (shell: 'bash' | 'zsh' | 'fish') => {
    const { completionTree } = await import('../completion/tree.js');
    const tree = completionTree(command.parent!);
    const { bashCompletion } = await import('../completion/bash.js');
    const { zshCompletion } = await import('../completion/zsh.js');
    const { fishCompletion } = await import('../completion/fish.js');
    const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };
    process.stdout.write(scripts[shell](tree));
  });
}
