import { Command } from 'commander';
import { helpBehind } from '../terminal/help.js';
import type { TopFlags } from './top.js';

const HELP = `
The formation of a server: tokens a second, the batch, the KV cache, and a row for each request in flight. q or Ctrl-C leaves,
arrows scroll, Tab shows the next of several models. Where the server goes away it waits until it is back.

--once prints one picture, of a second; --json prints an object a line for each event, a few times a second while there is
work and every five seconds while there is none; both print one object.

Exit codes: 0 when it is left, 1 where the server is not there, refuses, or is none of Skein's, 2 for what is not understood,
130 and 143 after SIGINT and SIGTERM.
`;

export function topCommand(): Command {
  const command = new Command('top')
    .description('watch what a server has in flight')
    .argument('[URL]', 'of the server', 'http://127.0.0.1:8000')
    .option('--model <NAME>', 'one of its models (default: all)')
    .option('--api-key <KEY>', 'of the server (SKEIN_API_KEY)')
    .option('--once', 'print one picture and end')
    .option('--json', 'print JSON');
  return helpBehind(command, HELP).action(async (url: string, flags: TopFlags) => {
    const { top } = await import('./top.js');
    await top(url, flags);
  });
}
