import { Command } from 'commander';
import { chatHelp } from '../chat/chat-commands.js';
import { helpBehind } from '../terminal/help.js';
import { defineAsking } from './asking-command.js';
import type { ChatFlags } from './chat.js';

const HELP = `
In the chat:
${chatHelp()
  .map((line) => `  ${line}`)
  .join('\n')}

Your messages are kept for the next chat in ~/.local/state/skein/chat-history.jsonl (set XDG_STATE_HOME, or SKEIN_STATE_DIR
for the folder), at most 1000, in a file that only you can read; --no-history keeps none. If stdin is not a terminal, each
line of stdin is a message, answers go to stdout and nothing is kept.

Exit codes: 0 when you leave the chat, 1 for a failure, or if a line from a pipe was not answered, 2 for a command line that
is not understood, 130 after Ctrl-C while loading or without a terminal, 143 after SIGTERM.
`;

export function chatCommand(): Command {
  const command = new Command('chat')
    .description('talk with a model')
    .option('--no-history', 'do not keep your messages for the next chat')
    .option('-v, --verbose', 'show the time and tokens of each answer');
  defineAsking(command);
  return helpBehind(command, HELP).action(async (flags: ChatFlags) => {
    const { chat } = await import('./chat.js');
    process.exitCode = await chat(flags);
  });
}
