import { parentPort, workerData } from 'node:worker_threads';
import { Tokenizer } from './tokenizer.js';
import { readTokenizerFiles } from './tokenizer-files.js';
import type { TokenizerJob, TokenizerReply, TokenizerSource } from './tokenizer-pool.js';

/** Entry of a tokenizer pool's thread: one job in, one reply out, in order. */
const port = parentPort;
if (port === null) throw new Error('tokenizer-worker is the entry of a worker thread.');
const source = workerData as TokenizerSource;
const tokenizer = new Tokenizer(
  'files' in source ? source.files : await readTokenizerFiles(source.directory),
);

port.on('message', (job: TokenizerJob) => {
  const reply = encode(job);
  port.postMessage(reply, 'tokens' in reply ? [reply.tokens.buffer as ArrayBuffer] : []);
});

function encode(job: TokenizerJob): TokenizerReply {
  try {
    return { tokens: tokenizer.encodeSegments(job.segments, { addSpecialTokens: job.addSpecialTokens }) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
