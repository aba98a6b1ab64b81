// Answers prompts and prints what came, for the bench of experts: in a process of its own, which may have less memory than the model.
import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import { compiled } from '../compiled.js';

export interface Asked {
  model: string;
  cacheDir: string;
  panels: boolean;
  expertFraction: number;
  threads: number;
  promptTokens: number[][];
  maxTokens: number;
}

export interface Answered {
  /** Of each prompt: the tokens drawn and their log-probs. */
  drawn: string[];
  loadSeconds: number;
  /** Tokens a second after the first, over all prompts. */
  tokensPerSecond: number;
  /** Bytes of experts read: of prompts, and of each token after the first. */
  promptBytes: number;
  bytesPerToken: number;
  /** The sentence at the start; null: there was none. */
  said: string | null;
}

const asked: Asked = JSON.parse(process.argv[2]!);
const { Skein } = await compiled<typeof import('../../../src/index.js')>('src/index.js');
const beginMs = performance.now();
const skein = await Skein.load({
  model: asked.model,
  weights: 'stored',
  outputWeights: 'stored',
  cacheDir: asked.cacheDir,
  panels: asked.panels,
  expertFraction: asked.expertFraction,
  threads: asked.threads,
  maxContextTokens: 1024,
  kvCacheTokens: 2048,
  maxBatchTokens: 256,
  chunkedPrefill: true,
});
const loadSeconds = (performance.now() - beginMs) / 1000;
let [promptBytes, tokenBytes, tokens, milliseconds] = [0, 0, 0, 0];
skein.onStats((stats: IterationStats) => {
  if (stats.contextTokens > 0) {
    promptBytes += stats.expertReadBytes;
    return;
  }
  tokenBytes += stats.expertReadBytes;
  tokens += stats.generatedTokens;
  milliseconds += stats.iterationMs;
});
const drawn: string[] = [];
for (const promptTokens of asked.promptTokens) {
  const pieces: string[] = [];
  const { maxTokens } = asked;
  const request = {
    promptTokens,
    maxTokens,
    temperature: 2,
    seed: drawn.length,
    logProbs: 3,
    ignoreEos: true,
  };
  for await (const piece of skein.generate(request))
    pieces.push(JSON.stringify([piece.tokens, piece.logProbs]));
  drawn.push(pieces.join(' '));
}
const answered: Answered = {
  drawn,
  loadSeconds,
  tokensPerSecond: (1000 * tokens) / milliseconds,
  promptBytes,
  bytesPerToken: tokenBytes / tokens,
  said: skein.info.expertReading,
};
await skein.close();
process.stdout.write(JSON.stringify(answered));
