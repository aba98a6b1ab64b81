import { Command } from 'commander';
import { helpBehind } from '../terminal/help.js';
import type { TopFlags } from './top.js';

const HELP = `
Shows a server's tokens per second, its batch, its KV cache, and a row for each request in flight. q or Ctrl-C leaves, arrows
scroll, Tab shows the next of several models. If the server stops, skein top waits until it is back.

--once prints one picture, taken over a second. --json prints one JSON object per line for each event: a few times a second
while there is work, every five seconds while there is none. --once --json prints one object.

Exit codes: 0 when you leave, 1 if the server does not answer, refuses, or is not a Skein server, 2 for a command line that is
not understood, 130 after SIGINT and 143 after SIGTERM.
`;

export function topCommand(): Command {
  const command = new Command('top')
    .description('watch the requests that a server has in flight')
    .argument('[URL]', 'address of the server', 'http://127.0.0.1:8000')
    .option('--model <NAME>', 'show only this model of the server (default: all)')
    .option('--api-key <KEY>', 'API key for the server (SKEIN_API_KEY)')
    .option('--once', 'print one picture and exit')
    .option('--json', 'print JSON');
  return helpBehind(command, HELP).action(async (url: string, flags: TopFlags) => {
    const { top } = await import('./top.js');
    await top(url, flags);
  });
}
