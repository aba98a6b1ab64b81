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

What is typed is kept for the next chat in ~/.local/state/skein/chat-history.jsonl (XDG_STATE_HOME, or SKEIN_STATE_DIR for
the folder), 1000 messages at most, for this user's eyes alone; --no-history keeps nothing. Where stdin is no terminal each of its lines
is a message, answers go to stdout and nothing is kept.

Exit codes: 0 for a chat that was left, 1 for what fails, and where a line of a pipe was not answered, 2 for what is not
understood, 130 and 143 after Ctrl-C while loading, or without a terminal, and SIGTERM.
`;

export function chatCommand(): Command {
  const command = new Command('chat')
    .description('talk with a model')
    .option('--no-history', 'keep nothing of what is typed')
    .option('-v, --verbose', 'say behind each answer what it took');
  defineAsking(command);
  return helpBehind(command, HELP).action(async (flags: ChatFlags) => {
    const { chat } = await import('./chat.js');
    process.exitCode = await chat(flags);
  });
}
