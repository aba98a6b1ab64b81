import { Command, Option } from 'commander';
import { chatHelp } from '../chat/chat-commands.js';
import { gathered } from '../settings/flags.js';
import { helpBehind } from '../terminal/help.js';
import { defineAsking } from './asking-command.js';
import type { ChatFlags } from './chat-opening.js';

const HELP = `
In the chat:
${chatHelp()
  .map((line) => `  ${line}`)
  .join('\n')}

Conversations are kept in ~/.local/state/skein/chats, and your messages for the arrow keys in chat-history.jsonl next to it
(set XDG_STATE_HOME, or SKEIN_STATE_DIR for the folder), at most 200 and 1000, in files that only you can read; --no-history
keeps none. If stdin is not a terminal, each line of stdin is a message, answers go to stdout as the model wrote them, and nothing is
kept but a chat that is resumed.

--tools FILE names a module that exports functions, each under its name:
  export const get_time = { description: 'The time now', execute: () => new Date() };
They run in this process when the model calls them.

Exit codes: 0 when you leave the chat, 1 for a failure, or if a line from a pipe was not answered, 2 for a command line that
is not understood, 130 after Ctrl-C while loading or without a terminal, 143 after SIGTERM.
`;

export function chatCommand(): Command {
  const command = new Command('chat')
    .description('talk with a model')
    .option('--resume [ID]', 'go on with a conversation that is kept, the newest by default')
    .option('--list', 'list the conversations that are kept')
    .option('--no-history', 'keep neither this conversation nor your messages')
    .option('--no-markdown', 'show answers as the model writes them')
    .addOption(
      new Option(
        '--tools <FILE>',
        'a module that exports functions for the model; may be repeated',
      ).argParser(gathered),
    )
    .option('-v, --verbose', 'show the time and tokens of each answer');
  defineAsking(command);
  return helpBehind(command, HELP).action(async (flags: ChatFlags) => {
    const { chat } = await import('./chat.js');
    process.exitCode = await chat(flags);
  });
}
