import type { KvDtype } from '../../kvcache/cache-shape.js';
import { kvBytesPerBlock } from '../../kvcache/kv-cache-size.js';
import type { NetworkPlan } from '../../network/plan.js';
import { multipliedWeights } from '../../network/products.js';
import { ropeDependsOnLength, ropeFrequencies } from '../../network/rope.js';
import { RopeTable } from '../batch/rope-table.js';
import { type Engine, EngineError, loadableEngine } from '../building/engine.js';
import { weightBytesOf } from '../directory/engine-directory.js';
import { headRows } from '../speculation/hidden-rows.js';
import { type DraftSetup, draftSizes, type OpenedDraft } from './load-draft.js';

/**
 * Opens the head of an engine as its draft model. Both map the same files, so its weights are counted with the model's, and what both read
 * is in memory once.
 *
 * @throws EngineError if the engine was built without it
 */
export async function openHead(setup: Omit<DraftSetup, 'panels'>): Promise<OpenedDraft> {
  const { kind, engine, limits, kvDtype } = setup;
  const plan = headOf(engine);
  const { config } = engine.manifest;
  const { expertFraction } = setup.options;
  const sizes = { ...draftSizes(setup, engine), ...(expertFraction !== undefined && { expertFraction }) };
  const loadable = { ...loadableEngine(engine), plan };
  const { fixed, mostKvCache } = await kind.measure(loadable, { ...sizes, numBlocks: 1 });
  const { hiddenSize: width } = config;
  const most = headRows(limits);
  // Those of sequences, of the model's steps, and of the head's own.
  const rows = most * limits.maxNumSequences + limits.microBatch.maxNumTokens + 2 * sizes.maxNumTokens;
  const rowBytes = rows * width * Float32Array.BYTES_PER_ELEMENT;
  const perLength = ropeDependsOnLength(config.rope)
    ? (length: number) => ropeFrequencies(config.rope, length)
    : null;
  return {
    fixed: { packedWeights: 0, storedWeights: 0, workspace: fixed.workspace + rowBytes },
    mostKvCache,
    bytesPerBlock: bytesPerBlockOf(plan, limits.tokensPerBlock, kvDtype),
    start: async (numBlocks) => ({
      executor: await kind.open(loadable, {
        ...sizes,
        maxSeqLen: Math.min(sizes.maxSeqLen, numBlocks * limits.tokensPerBlock),
        numBlocks,
      }),
      rope: new RopeTable(ropeFrequencies(config.rope), perLength, limits.maxNumSequences),
      costShare: readBytes(engine, plan) / weightBytesOf(engine.manifest),
      head: { width, most },
    }),
  };
}

function headOf({ directory, plan }: Engine): NetworkPlan {
  if (plan.head !== undefined) return plan.head;
  throw new EngineError(
    `${directory}: has no head that guesses tokens, which speculation by mtp needs; where its model has one, skein build --draft-head makes an engine with it (a model that is given in the place of an engine gets it by itself).`,
  );
}

const bytesPerBlockOf = ({ caches }: NetworkPlan, tokensPerBlock: number, kvDtype: KvDtype) =>
  kvBytesPerBlock(caches, tokensPerBlock, kvDtype);

/** Bytes of the matrices that a round of the head reads. */
function readBytes({ manifest }: Engine, { ops }: NetworkPlan): number {
  const read = multipliedWeights({ ops });
  return manifest.tensors.reduce((sum, { name, byteLength }) => sum + (read.has(name) ? byteLength : 0), 0);
}
