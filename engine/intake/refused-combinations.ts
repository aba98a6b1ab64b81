import { input, says } from '../../base/named-text.js';
import { NAMED_PARAMETERS } from '../../callbacks/request/parameters.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';

type Inputs = Record<string, Tensor>;

/** Two inputs of a request that cannot be combined, and the reason. */
interface RefusedCombination {
  /** Name of the tensor that is refused. */
  field: string;
  /** True if its value cannot be combined with the other one; default: if it asks for anything. */
  asks?: (inputs: Inputs) => boolean;
  other: string;
  why: string;
}

/** True if a tensor asks for anything, for the tensors in refused combinations. A value that changes nothing asks for nothing. */
const ASKS: Readonly<Record<string, (inputs: Inputs) => boolean>> = {
  beam_width: (inputs) => numberOf(inputs, 'beam_width', 1) > 1,
  num_return_sequences: (inputs) => numberOf(inputs, 'num_return_sequences', 1) > 1,
  best_of: (inputs) => numberOf(inputs, 'best_of', 1) > 1,
  no_repeat_ngram_size: (inputs) => numberOf(inputs, 'no_repeat_ngram_size', 0) > 0,
  streaming: (inputs) => numberOf(inputs, 'streaming', 0) !== 0,
  return_generation_logits: (inputs) => numberOf(inputs, 'return_generation_logits', 0) !== 0,
  draft_input_ids: (inputs) => isGiven(inputs, 'draft_input_ids'),
  known_output_ids: ({ known_output_ids: known }) => (known?.data as Int32Array)?.some((token) => token >= 0),
  guided_decoding_guide_type: (inputs) =>
    isGiven(inputs, 'guided_decoding_guide_type') || isGiven(inputs, 'guided_decoding_guide'),
  logits_post_processor_name: (inputs) => isGiven(inputs, 'logits_post_processor_name'),
  prompt_embedding_table: (inputs) =>
    isGiven(inputs, 'prompt_embedding_table') && numberOf(inputs, 'prompt_vocab_size', 1) !== 0,
};

const NO_DRAWS = 'a beam search takes the most probable tokens and draws none; leave it out or make it';
const ROWS = 'each step has a row for each sequence already, and none for a draft';

/**
 * All refused combinations. Every input that is not listed here works, alone and with all others that are not listed.
 */
const REFUSED_COMBINATIONS: readonly RefusedCombination[] = [
  ...NAMED_PARAMETERS.flatMap(({ tensor, parameter: { neutralToBeams: neutral } }) =>
    neutral === undefined
      ? []
      : {
          field: tensor,
          asks: not(tensor, ...neutral),
          other: 'beam_width',
          why: `${NO_DRAWS} ${neutral.at(-1)}`,
        },
  ),
  {
    field: 'mirostat',
    asks: not('mirostat', 0),
    other: 'known_output_ids',
    why: 'its state comes from the probabilities of the tokens before, and those of known ones are not known',
  },
  {
    field: 'penalty_last_n',
    asks: not('penalty_last_n', -1),
    other: 'no_repeat_ngram_size',
    why: 'a row has one history, and n-grams are looked for in all of it; leave it out or make it -1',
  },
  {
    field: 'num_return_sequences',
    other: 'beam_width',
    why: 'a beam search answers with all of its beams; leave it out',
  },
  { field: 'best_of', other: 'beam_width', why: 'a beam search answers with all of its beams; leave it out' },
  {
    field: 'guided_decoding_guide_type',
    other: 'beam_width',
    why: 'beams exchange what they have, and no guide follows that; ask for one beam',
  },
  { field: 'draft_input_ids', other: 'beam_width', why: 'beams choose among the tokens of each other' },
  { field: 'draft_input_ids', other: 'num_return_sequences', why: ROWS },
  { field: 'draft_input_ids', other: 'best_of', why: ROWS },
  {
    field: 'draft_input_ids',
    other: 'guided_decoding_guide_type',
    why: 'what a guide leaves no choice about is its draft, and there is one at a time',
  },
  {
    field: 'draft_input_ids',
    other: 'logits_post_processor_name',
    why: 'a logits post-processor is promised one row of logits a step',
  },
  {
    field: 'draft_input_ids',
    other: 'prompt_embedding_table',
    why: 'requests with embeddings of their own have no drafts',
  },
  {
    field: 'draft_input_ids',
    other: 'return_generation_logits',
    why: 'generation logits are returned one row a step',
  },
  {
    field: 'known_output_ids',
    other: 'beam_width',
    why: 'which beams go on is not known from their tokens; leave it out, and the search begins again',
  },
  {
    field: 'best_of',
    asks: leavesSomeOut,
    other: 'known_output_ids',
    why: 'which sequences are the best is told by the log-probs of all their tokens, and those of known ones are not',
  },
  {
    field: 'best_of',
    asks: leavesSomeOut,
    other: 'streaming',
    why: 'which sequences are the best is known at their end only; ask without streaming',
  },
  ...(['num_return_sequences', 'best_of'] as const).map((other) => ({
    field: 'return_generation_logits',
    other,
    why: 'the logits of several sequences are not returned; ask for one sequence',
  })),
];

/** Throws a ParameterError for the first refused combination; it names both inputs and the reason. */
export function checkCombinations(inputs: Inputs): void {
  for (const { field, asks = ASKS[field]!, other, why } of REFUSED_COMBINATIONS) {
    if (!ASKS[other]!(inputs) || !asks(inputs)) continue;
    throw new ParameterError(
      field,
      says`${input(field)} is refused together with ${input(other)}: ${why}.`,
      'unsupported',
    );
  }
}

function isGiven(inputs: Inputs, name: string): boolean {
  return (inputs[name]?.data.length ?? 0) > 0;
}

function numberOf(inputs: Inputs, name: string, ifAbsent: number): number {
  return Number(inputs[name]?.data[0] ?? ifAbsent);
}

/** True if the tensor is given with another value than these. */
function not(name: string, ...values: number[]): (inputs: Inputs) => boolean {
  return (inputs) => isGiven(inputs, name) && !values.includes(numberOf(inputs, name, 0));
}

function leavesSomeOut(inputs: Inputs): boolean {
  return numberOf(inputs, 'best_of', 1) > numberOf(inputs, 'num_return_sequences', 1);
}
