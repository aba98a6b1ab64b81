import { setImmediate as nextTurn } from 'node:timers/promises';
import { reasoningStyle } from '../../generation/reasoning/reasoning-style.js';
import type { TextCodec } from '../../generation/text-model.js';
import { mentions } from '../../generation/tools/detect-format.js';
import { type ModelFacts, readModelFacts } from '../../serving/model-facts.js';
import { ModelLoadError, reasonFor } from '../../serving/model-load-error.js';
import { type ModelTask, taskOf } from '../../serving/model-task.js';
import type { StoredModel } from '../../serving/on-demand/model-store.js';
import type { ServedModel } from '../../serving/served-model.js';
import { detailsOf, factsOfServed } from './details.js';

/** What there is to show of a model, loaded or not. */
export interface Shown {
  name: string;
  facts: ModelFacts | null;
  template: string | null;
  task: ModelTask;
  /** True where it takes pictures; of a model that is not loaded it is not known. */
  sees: boolean;
  maxSeqLen: number;
  modifiedMs: number;
}

export function shownOfServed(model: ServedModel): Shown {
  const facts = factsOfServed(model);
  const task = taskOf(model.kind === 'generator' ? undefined : model.head);
  const template = model.kind === 'generator' ? templateOf(model.codec) : null;
  const { id: name, maxSeqLen, created } = model;
  const sees = model.kind === 'generator' && model.sight != null;
  return { name, facts, template, task, sees, maxSeqLen, modifiedMs: 1000 * created };
}

/** There is one place for a template: without a usual one it has that of conversations with functions. */
function templateOf({ templateSource, toolTemplateSource }: TextCodec): string | null {
  return templateSource ?? toolTemplateSource ?? null;
}

/** The same of a model of the folder, whose headers are read. @throws ModelLoadError where its files are wrong */
export async function shownOfStored(stored: StoredModel): Promise<Shown> {
  const { name, modifiedMs } = stored;
  const facts = await factsOfStored(stored);
  const { encoder } = facts.config;
  const task = taskOf(encoder?.head);
  return {
    name,
    facts,
    template: facts.chatTemplate,
    task,
    sees: false,
    maxSeqLen: facts.config.maxPositions,
    modifiedMs,
  };
}

/** The answer of POST /api/show. */
export function showAnswer({ name, facts, template, task, sees, maxSeqLen, modifiedMs }: Shown) {
  return {
    modelfile: `# ${name} as Skein serves it\nFROM ${name}\n`,
    parameters: '',
    // The chat template in Jinja, in which models are published.
    template: template ?? '',
    details: detailsOf(facts),
    model_info: modelInfo(facts, maxSeqLen),
    capabilities: capabilitiesOf({ task, template, sees }),
    modified_at: new Date(modifiedMs).toISOString(),
  };
}

/** What clients look for before they send tools, or ask for thoughts. */
function capabilitiesOf({ task, template, sees }: Pick<Shown, 'task' | 'template' | 'sees'>): string[] {
  if (task !== 'generate') return task === 'embed' ? ['embedding'] : [];
  const thinks =
    reasoningStyle(template, 'auto') !== 'none' ||
    (template !== null && mentions(template, 'reasoning_effort'));
  // Where a template knows no tools, the system message describes them.
  const tools = template === null ? [] : ['tools'];
  return ['completion', ...tools, ...(thinks ? ['thinking'] : []), ...(sees ? ['vision'] : [])];
}

/** Dimensions by the names that GGUF has for them. */
function modelInfo(facts: ModelFacts | null, maxSeqLen: number): Record<string, unknown> {
  if (facts === null) return { 'general.context_length': maxSeqLen };
  const { config, parameters } = facts;
  const { architecture, experts } = config;
  return {
    'general.architecture': architecture,
    'general.parameter_count': parameters,
    [`${architecture}.context_length`]: maxSeqLen,
    [`${architecture}.embedding_length`]: config.hiddenSize,
    [`${architecture}.block_count`]: config.numLayers,
    [`${architecture}.feed_forward_length`]: config.intermediateSize,
    ...(experts && {
      [`${architecture}.expert_count`]: experts.count,
      [`${architecture}.expert_used_count`]: experts.used,
    }),
    [`${architecture}.attention.head_count`]: config.numHeads,
    [`${architecture}.attention.head_count_kv`]: config.numKvHeads,
    [`${architecture}.vocab_size`]: config.vocabSize,
  };
}

/** Models whose facts are kept. */
const KEPT = 64;

/** By path and digest, in the order of their last use. */
const kept = new Map<string, Promise<ModelFacts>>();
/** The read that is the last in turn: one takes up to a tenth of a second, since a header holds the vocabulary. */
let lastInTurn: Promise<unknown> = Promise.resolve();

/** What the files of a model say that is not loaded, read once for all who ask. @throws ModelLoadError where they are wrong */
export function factsOfStored(stored: StoredModel): Promise<ModelFacts> {
  const key = `${stored.path}\0${stored.digest}`;
  const known = kept.get(key);
  kept.delete(key);
  const facts = known ?? readInTurn(stored);
  kept.set(key, facts);
  if (known === undefined) facts.catch(() => kept.delete(key));
  if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
  return facts;
}

function readInTurn({ name, path }: StoredModel): Promise<ModelFacts> {
  const reading = lastInTurn.then(async () => {
    await nextTurn();
    try {
      return readModelFacts(path);
    } catch (error) {
      const reason = reasonFor(error, { name, path });
      throw new ModelLoadError('failed', `The model '${name}' cannot be read: ${reason}`, { cause: error });
    }
  });
  lastInTurn = reading.catch(() => {});
  return reading;
}
