import { Command } from 'commander';
import { OPTIONS } from '../options/table.js';
import { loadConfig } from '../settings/config.js';
import { flagsInGroups } from '../settings/flags.js';
import { checkInstructionSet } from '../settings/instruction-set-variable.js';
import { helpBehind } from '../terminal/help.js';
import type { BatchFlags } from './batch.js';
import { configOption } from './serve-command.js';

const BATCH_HELP = `
A line of IN.jsonl: {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": ..., "messages": ...}}
A line of OUT.jsonl: {"id": ..., "custom_id": "a", "response": {"status_code": 200, "request_id": ..., "body": ...}, "error": null}

Answers are written in the order in which they are ready; custom_id says which request an answer belongs to. To continue an
interrupted batch, run the same command again: it skips requests that have an answer, and sends failed ones again.

Exit codes: 0 all requests are answered, 1 the batch could not be started or not be finished, 2 for a name, a value or an
input file that is not understood, 3 some requests failed (the error file lists them), 130 after SIGINT, 143 after SIGTERM.
`;

export function batchCommand(): Command {
  const command = new Command('batch')
    .description('answer the requests of a file in the OpenAI batch format')
    .argument('<IN.jsonl>', 'the requests, one per line, with custom_id, method, url and body')
    .argument('<OUT.jsonl>', 'the answers; if the file has some already, the batch continues')
    .option('--error-file <FILE>', 'file for failed requests (default: OUT.errors.jsonl)')
    .option('--concurrency <N>', 'requests that run at once (default: twice --max-active-requests)')
    .option('--restart', 'begin the batch again, and overwrite the output')
    .option('--json', 'print the summary as JSON')
    .addOption(configOption());
  for (const flag of flagsInGroups(OPTIONS.filter(({ isForBatch }) => isForBatch))) command.addOption(flag);
  type Flags = BatchFlags & { config?: string };
  return helpBehind(command, BATCH_HELP).action(async (input: string, output: string, flags: Flags) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const { errorFile, concurrency, restart, json, config: file, ...options } = flags;
    const config = loadConfig({ flags: options, environment: process.env, file });
    const { batch } = await import('./batch.js');
    process.exitCode = await batch(input, output, { errorFile, concurrency, restart, json }, config);
  });
}
