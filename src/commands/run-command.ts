import { Command } from 'commander';
import { helpBehind } from '../terminal/help.js';
import { defineAsking } from './asking-command.js';
import type { RunFlags } from './run.js';

const HELP = `
Where a text is piped in, it comes behind the argument: skein run "Sum this up:" < letter.txt

--json prints {"model", "text", "finishReason", "seed", "usage": {"promptTokens", "cachedTokens", "completionTokens"},
"timings": {"loadMs", "firstTokenMs", "totalMs", "tokensPerSecond"}}. Control characters of an answer are left out, other
than in JSON, so that none can do anything to the terminal.

Exit codes: 0 for an answer, 1 for what fails, 2 for what is not understood, 130 after Ctrl-C and 143 after SIGTERM (what
has come of the answer is written then).
`;

export function runCommand(): Command {
  const command = new Command('run')
    .description('ask a model once, and print its answer as it comes')
    .argument('[PROMPT]', 'what to ask; - for what comes on stdin')
    .option('--raw', 'go on with the text, without the chat template')
    .option('--json', 'print one JSON object instead, when the answer is whole')
    .option('-v, --verbose', 'say on stderr what ran, and how fast');
  defineAsking(command);
  return helpBehind(command, HELP).action(async (prompt: string | undefined, flags: RunFlags) => {
    const { run } = await import('./run.js');
    await run(prompt, flags);
  });
}
