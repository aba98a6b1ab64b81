import { Command, Option } from 'commander';
import { gathered } from '../settings/flags.js';
import { helpBehind } from '../terminal/help.js';
import { defineAsking } from './asking-command.js';
import type { RunFlags } from './run.js';

const HELP = `
Text from a pipe is added after the argument: skein run "Sum this up:" < letter.txt
Texts of --file stand before the question, each under its name: skein run "What differs?" --file old.ts --file new.ts
Pictures (JPEG, PNG, WebP, GIF) are seen by models that see. At most 32 files are taken, with 8 MB of text and 12 MB of pictures.

--json prints {"model", "text", "finishReason", "seed", "usage": {"promptTokens", "cachedTokens", "completionTokens"},
"timings": {"loadMs", "firstTokenMs", "totalMs", "tokensPerSecond"}}. Control characters in an answer are
left out, or escaped in JSON, so that they cannot affect the terminal.

Exit codes: 0 for an answer, 1 for a failure, 2 for a command line that is not understood, 130 after Ctrl-C and 143 after
SIGTERM (the answer so far is written then).
`;

export function runCommand(): Command {
  const command = new Command('run')
    .description('ask a model one question, and print the answer while it is generated')
    .argument('[PROMPT]', 'the question; - reads it from stdin')
    .addOption(
      new Option(
        '-f, --file <PATH>',
        'a text or a picture that the question is about; may be repeated',
      ).argParser(gathered),
    )
    .option('--raw', 'continue the text, without the chat template')
    .option('--json', 'print one JSON object when the answer is complete')
    .option('-v, --verbose', 'print the model, the executor and the speed on stderr');
  defineAsking(command);
  return helpBehind(command, HELP).action(async (prompt: string | undefined, flags: RunFlags) => {
    const { run } = await import('./run.js');
    await run(prompt, flags);
  });
}
