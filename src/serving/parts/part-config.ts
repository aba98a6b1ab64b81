import { closestName } from '../../../base/did-you-mean.js';
import { ENGINE_BACKEND } from '../../../engine/backends/find-backend.js';
import { checkConfig } from '../../../models/repository/check-config.js';
import { completeConfig, type Told } from '../../../models/repository/complete-config.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { fieldError, type WrittenConfig } from '../../../models/repository/written-config.js';

/** Parts of a model of texts that ensembles are made of, as TensorRT-LLM's backend has them. */
const PART_KINDS = ['tokenizer', 'engine', 'detokenizer'] as const;
export type PartKind = (typeof PART_KINDS)[number];

/** What a configuration says of a part. */
export interface PartTerms {
  kind: PartKind;
  /** Name of the model of texts that it is a part of. */
  of: string;
  /** output_ids of the engine are the generated tokens alone, where the request says nothing. */
  excludesInput: boolean;
}

const PARAMETERS = ['part', 'part_of', 'exclude_input_in_output'];

/** The model that a configuration says to be a part of; null: it is no part. */
export function partOf({ fields }: WrittenConfig): string | null {
  const { part, part_of: of } = fields.parameters ?? {};
  return fields.backend === ENGINE_BACKEND && part !== undefined ? (of?.string_value ?? '') : null;
}

/** @throws ModelConfigError naming the parameter, what is expected and what was found */
export function partTerms(written: WrittenConfig): PartTerms {
  const parameters = written.fields.parameters ?? {};
  const textOf = (name: string) => parameters[name]?.string_value ?? '';
  const refuse = (name: string, sentence: string): never => {
    throw fieldError(written, ['parameters', name], sentence);
  };
  for (const name of Object.keys(parameters)) {
    if (PARAMETERS.includes(name)) continue;
    const meant = closestName(name, PARAMETERS);
    const hint = meant === null ? '' : `; did you mean '${meant}'?`;
    refuse(name, `is no parameter of a part; there are: ${PARAMETERS.join(', ')}${hint}`);
  }
  const kind = PART_KINDS.find((one) => one === textOf('part'));
  if (kind === undefined)
    return refuse('part', `is '${textOf('part')}'; one of ${PART_KINDS.join(', ')} is expected.`);
  const of = textOf('part_of');
  if (of === '') return refuse('part_of', 'is missing; the name of a model that generates text is expected.');
  const excludes = textOf('exclude_input_in_output');
  if (!['', 'true', 'false'].includes(excludes) || (excludes !== '' && kind !== 'engine'))
    refuse('exclude_input_in_output', `is '${excludes}'; true or false is expected, of an engine.`);
  return { kind, of, excludesInput: excludes === 'true' };
}

/** What a part does not take: its requests come one by one, and the model's engine batches them. */
const REFUSED = [
  'dynamic_batching',
  'sequence_batching',
  'instance_group',
  'model_warmup',
  'batch_input',
  'batch_output',
  'response_cache',
] as const;

/**
 * The configuration of a part, complete. @param told its inputs and outputs, which the file may leave out
 * @throws ModelConfigError where the file says something else
 */
export function partConfig(
  written: WrittenConfig,
  { name, folder }: { name: string; folder: string },
  told: Pick<Told, 'input' | 'output'>,
): ModelConfig {
  for (const field of REFUSED) {
    if (written.fields[field] === undefined) continue;
    throw fieldError(
      written,
      [field],
      'is not taken: a part has no instances and no queue of its own, and the engine forms the batches.',
    );
  }
  refuseReshape(written, 'is not taken: a part has the shapes of its model.');
  const { max_batch_size: most = 1 } = written.fields;
  if (most !== 1)
    throw fieldError(
      written,
      ['max_batch_size'],
      `is ${most}; 1 is expected: the engine forms the batches of its iterations by itself.`,
    );
  const facts = { name, folder, backend: ENGINE_BACKEND, defaultFilename: '' };
  const config = completeConfig(written, { ...facts, told: { ...told, max_batch_size: 1 } });
  checkConfig(config, written);
  return config;
}

/** @param why the rest of a sentence that begins with the field @throws ModelConfigError for a reshape, of whichever tensor */
export function refuseReshape(written: WrittenConfig, why: string): void {
  for (const kind of ['input', 'output'] as const) {
    const index = written.fields[kind]?.findIndex(({ reshape }) => reshape !== undefined) ?? -1;
    if (index >= 0) throw fieldError(written, [kind, index, 'reshape'], why);
  }
}
