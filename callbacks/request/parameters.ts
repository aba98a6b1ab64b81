import { MAX_INT32 } from '../../base/int32.js';
import { namedParameters, type ParameterTable } from './parameter.js';

/**
 * The one table of how the next token is chosen (SamplingBatch documents the order of operations). Its order is that of
 * checks, tensors and documents. To add a parameter, add its entry here and the code that samples with it.
 */
export const PARAMETERS = {
  /** Divisor of the logits; 0 = greedy. Below 0.001 counts as 0: dividing logits by less only overflows. */
  temperature: {
    kind: 'number',
    tensor: 'temperature',
    range: [0, 100],
    routeRange: [0, 2],
    default: 1,
    neutralToBeams: [0, 1],
    recommendedAs: { huggingFace: 'temperature', gguf: 'temp' },
    help: 'What the logits are divided by: 0 always takes the most probable token, more draws more freely.',
    flag: {
      metavar: 'T',
      help: '0 always takes the most probable token, higher values draw more freely (default: 1)',
    },
    // The form begins below the default, since small models then keep to their subject.
    form: { label: 'Temperature', isUsual: true, value: 0.7, step: 0.1 },
    ollama: { help: 'Default 0.8.', default: 0.8 },
  },
  /** Number of most probable tokens to draw from; 0 = off. */
  topK: {
    kind: 'integer',
    tensor: 'runtime_top_k',
    field: 'top_k',
    range: [0, MAX_INT32],
    isOffBelowZero: true,
    default: 0,
    neutralToBeams: [0, 1],
    recommendedAs: { huggingFace: 'top_k', gguf: 'top_k' },
    help: 'Draws among this many of the most probable tokens; 0 or -1 = all.',
    flag: { metavar: 'N', help: 'draws among the N most probable tokens (default: 0, all)' },
    form: { label: 'Top k', isUsual: true, empty: 'off' },
    ollama: { help: 'Default 40; 0 or less: all.', default: 40 },
  },
  /** Draws from the most probable tokens whose probabilities sum to this; 1 = off; 0 keeps the most probable token only. */
  topP: {
    kind: 'number',
    tensor: 'runtime_top_p',
    field: 'top_p',
    range: [0, 1],
    default: 1,
    neutralToBeams: [0, 1],
    recommendedAs: { huggingFace: 'top_p', gguf: 'top_p' },
    help: 'Draws among the most probable tokens that make up this share of the probability; 1 = all.',
    flag: {
      metavar: 'SHARE',
      help: 'draws among the most probable tokens that make up this share (default: 1, all)',
    },
    form: { label: 'Top p', isUsual: true, min: 0.01, step: 0.01 },
    ollama: { help: 'Default 0.9.', default: 0.9 },
    shownBefore: 'topK',
  },
  /** Least probability of a token, relative to that of the most probable one; 0 = off. */
  minP: {
    kind: 'number',
    tensor: 'runtime_min_p',
    field: 'min_p',
    range: [0, 1],
    default: 0,
    neutralToBeams: [0],
    recommendedAs: { huggingFace: 'min_p', gguf: 'min_p' },
    help: 'Leaves out tokens less probable than this share of the most probable one; 0 = none.',
    flag: {
      metavar: 'SHARE',
      help: 'leaves out tokens less probable than this share of the most probable one (default: 0)',
    },
    form: { label: 'Min p', isUsual: true, empty: 'off', step: 0.01 },
    ollama: { help: 'Default 0.' },
  },
  /**
   * Divides the positive logits, and multiplies the negative ones, of tokens in the prompt or generated so far; 1 =
   * off.
   */
  repetitionPenalty: {
    kind: 'number',
    tensor: 'repetition_penalty',
    range: [2 ** -7, 100],
    default: 1,
    recommendedAs: { huggingFace: 'repetition_penalty', gguf: 'penalty_repeat' },
    help: 'Logits of tokens of the prompt and the answer so far are divided (negative ones multiplied) by it.',
    alias: {
      field: 'repeat_penalty',
      help: "llama.cpp's name of repetition_penalty; its `repeat_last_n` is 64 where it is not given.",
    },
    flag: {
      metavar: 'X',
      help: 'above 1: tokens that are in the prompt or the answer become less probable (default: 1)',
    },
    form: { label: 'Repetition penalty', isUsual: true, min: 0.01, max: 2, step: 0.01 },
    ollama: {
      name: 'repeat_penalty',
      help: 'Over the last `repeat_last_n` tokens of prompt and answer. Default 1.1; 1 is off.',
      default: 1.1,
    },
  },
  /** Subtracted from the logit of each token already generated; 0 = off. */
  presencePenalty: {
    kind: 'number',
    tensor: 'presence_penalty',
    range: [-100, 100],
    routeRange: [-2, 2],
    default: 0,
    recommendedAs: { gguf: 'penalty_present' },
    help: 'Taken from the logits of tokens that the answer has.',
    flag: {
      metavar: 'X',
      help: 'subtracts X from the logit of each token that is in the answer (default: 0)',
    },
    form: { label: 'Presence penalty', isUsual: true, step: 0.1 },
    ollama: { help: 'Default 0.' },
  },
  /** Subtracted from a token's logit for each time it was generated; 0 = off. */
  frequencyPenalty: {
    kind: 'number',
    tensor: 'frequency_penalty',
    range: [-100, 100],
    routeRange: [-2, 2],
    default: 0,
    recommendedAs: { gguf: 'penalty_freq' },
    help: 'Taken from the logits of tokens, for each time that the answer has them.',
    flag: { metavar: 'X', help: 'subtracts X for each time that a token is in the answer (default: 0)' },
    form: { label: 'Frequency penalty', isUsual: true, step: 0.1 },
    ollama: { help: 'Default 0.' },
  },
  /** Number of last tokens of prompt and answer that these three penalties see; -1: all; 0: none. */
  penaltyLastN: {
    kind: 'integer',
    tensor: 'penalty_last_n',
    field: 'repeat_last_n',
    range: [-1, MAX_INT32],
    default: -1,
    recommendedAs: { gguf: 'penalty_last_n' },
    help: 'Number of last tokens of prompt and answer that the penalties for repetition, presence and frequency see; -1 = all, 0 = none.',
    isNoTextInput: true,
    form: { label: 'Penalty window', empty: 'all' },
    ollama: {
      help: 'Number of last tokens that the penalties see. Default 64; 0: none, -1: all.',
      default: 64,
    },
  },
  /** With n > 0 no n tokens in a row of prompt and generated tokens occur a second time; 0 = off. */
  noRepeatNgramSize: {
    kind: 'integer',
    tensor: 'no_repeat_ngram_size',
    range: [0, MAX_INT32],
    default: 0,
    recommendedAs: { huggingFace: 'no_repeat_ngram_size' },
    help: 'No sequence of this many tokens occurs twice in prompt and answer; 0 = off.',
    form: { label: 'No-repeat n-gram', empty: 'off' },
    shownBefore: 'penaltyLastN',
  },
  /** Draws among the tokens whose surprise is nearest to the entropy, until they exceed this probability; 1 = off. */
  typicalP: {
    kind: 'number',
    tensor: 'runtime_typical_p',
    field: 'typical_p',
    range: [0, 1],
    default: 1,
    neutralToBeams: [1],
    recommendedAs: { huggingFace: 'typical_p', gguf: 'typ_p' },
    help: 'Draws among the tokens whose surprise is nearest to the entropy, until they exceed this probability; 1 = all.',
    form: { label: 'Typical p', empty: 'off', step: 0.01 },
    ollama: { help: 'Default 1, which is off.' },
  },
  /** Leaves out logits more than this many standard deviations below the greatest; 0 = off. */
  topNSigma: {
    kind: 'number',
    tensor: 'top_n_sigma',
    range: [0, 100],
    isOffBelowZero: true,
    default: 0,
    neutralToBeams: [0],
    help: 'Leaves out tokens whose logit is more than this many standard deviations below the greatest; 0 or -1 = none.',
    form: { label: 'Top n sigma', empty: 'off', step: 0.1 },
  },
  /** Probability that XTC leaves out, at a token, all tokens of at least xtcThreshold but the least probable one; 0 = off. */
  xtcProbability: {
    kind: 'number',
    tensor: 'xtc_probability',
    range: [0, 1],
    default: 0,
    neutralToBeams: [0],
    recommendedAs: { gguf: 'xtc_probability' },
    help: 'How likely it is, at each token, that all tokens of at least `xtc_threshold` but the least probable of them are left out.',
    form: { label: 'XTC probability', empty: 'off', step: 0.01 },
  },
  /** Probability from which XTC leaves tokens out; above 0.5: none. */
  xtcThreshold: {
    kind: 'number',
    tensor: 'xtc_threshold',
    range: [0, 1],
    default: 0.1,
    of: 'xtcProbability',
    recommendedAs: { gguf: 'xtc_threshold' },
    help: 'Probability from which `xtc_probability` leaves tokens out; above 0.5: none.',
    form: { label: 'XTC threshold', step: 0.01 },
  },
  /** Temperatures up to this much above and below `temperature` are used, by the entropy; 0 = off. */
  dynatempRange: {
    kind: 'number',
    tensor: 'dynatemp_range',
    range: [0, 100],
    default: 0,
    neutralToBeams: [0],
    help: 'The temperature follows the entropy, from so much below `temperature` to so much above; 0 = it is constant.',
    form: { label: 'Dynamic temp. range', empty: 'off', step: 0.1 },
  },
  /** Power of the entropy's share in that. */
  dynatempExponent: {
    kind: 'number',
    tensor: 'dynatemp_exponent',
    range: [0, 100],
    default: 1,
    of: 'dynatempRange',
    help: 'Power by which the entropy moves the temperature in `dynatemp_range`.',
    form: { label: 'Dynamic temp. exponent', step: 0.1 },
  },
  /** The filters see the distribution at temperature 1, and `temperature` applies to what they keep. */
  temperatureLast: {
    kind: 'flag',
    tensor: 'temperature_last',
    default: false,
    help: "`top_p` and `min_p` see the distribution before the temperature, as llama.cpp's do; false: after it.",
  },
  /** Version of mirostat, which keeps the surprise of the tokens near a target, in place of the filters; 0 = off. */
  mirostat: {
    kind: 'integer',
    tensor: 'mirostat',
    range: [0, 2],
    default: 0,
    neutralToBeams: [0],
    elsewhere: { mirostat_mode: [0] },
    recommendedAs: { gguf: 'mirostat' },
    help: 'Version of mirostat, 1 or 2: keeps the surprise of tokens near `mirostat_tau`, in place of all other filters; 0 = off.',
    form: { label: 'Mirostat', empty: 'off' },
    ollama: { help: 'Version of mirostat, 1 or 2. Default 0, which is off.' },
  },
  /** Target surprise of a token in bits. */
  mirostatTau: {
    kind: 'number',
    tensor: 'mirostat_tau',
    range: [0, 100],
    default: 5,
    of: 'mirostat',
    recommendedAs: { gguf: 'mirostat_tau' },
    help: 'Surprise in bits that mirostat aims at.',
    form: { label: 'Mirostat tau', step: 0.1 },
    ollama: { help: 'Default 5.' },
  },
  /** How fast mirostat learns. */
  mirostatEta: {
    kind: 'number',
    tensor: 'mirostat_eta',
    range: [0, 10],
    default: 0.1,
    of: 'mirostat',
    recommendedAs: { gguf: 'mirostat_eta' },
    help: 'How fast mirostat corrects itself.',
    form: { label: 'Mirostat eta', step: 0.01 },
    ollama: { help: 'Default 0.1.' },
  },
  /**
   * What DRY takes from the logit of a token that goes on with a repetition of dryAllowedLength tokens; with each further token
   * dryBase times as much; 0 = off.
   */
  dryMultiplier: {
    kind: 'number',
    tensor: 'dry_multiplier',
    range: [0, 1000],
    default: 0,
    help: 'Taken from the logit of a token that would go on with a repetition of `dry_allowed_length` tokens; 0 = off.',
    form: { label: 'DRY multiplier', empty: 'off', step: 0.1 },
  },
  /** Factor of that penalty for each further repeated token. */
  dryBase: {
    kind: 'number',
    tensor: 'dry_base',
    range: [1, 1000],
    default: 1.75,
    of: 'dryMultiplier',
    help: 'Factor by which the penalty of `dry_multiplier` grows with each further repeated token.',
    form: { label: 'DRY base', step: 0.05 },
  },
  /** Length from which DRY penalises repetitions. */
  dryAllowedLength: {
    kind: 'integer',
    tensor: 'dry_allowed_length',
    range: [1, MAX_INT32],
    default: 2,
    of: 'dryMultiplier',
    help: 'Length from which repetitions are penalised.',
    form: { label: 'DRY allowed length' },
  },
  /** Number of last tokens in which DRY looks for repetitions; -1: all; 0: off. */
  dryPenaltyLastN: {
    kind: 'integer',
    tensor: 'dry_penalty_last_n',
    range: [-1, MAX_INT32],
    default: -1,
    of: 'dryMultiplier',
    help: 'Number of last tokens in which repetitions are looked for; -1 = all, 0 = off.',
    form: { label: 'DRY window', empty: 'all' },
  },
  /** Tokens to generate before end_id and stop words may end the request. */
  minLength: {
    kind: 'integer',
    tensor: 'min_length',
    field: 'min_tokens',
    option: 'minTokens',
    range: [0, MAX_INT32],
    default: 0,
    help: 'Tokens before which neither end nor stop tokens are drawn.',
    form: { label: 'Min tokens', empty: '0' },
    shownBefore: 'noRepeatNgramSize',
  },
  /** Key of the random numbers (u64); null: a key is drawn at admission and returned with the final response. */
  seed: {
    kind: 'key',
    tensor: 'random_seed',
    field: 'seed',
    default: null,
    elsewhere: { random_seed: [] },
    help: 'An integer; the same seed gives the same answer, whatever else the server does. Not given: one is drawn.',
    flag: {
      metavar: 'N',
      help: 'the same seed gives the same answer (default: a random seed)',
      range: [0, Number.MAX_SAFE_INTEGER],
    },
    form: { label: 'Seed', isUsual: true, empty: 'random', min: 0 },
    ollama: { help: 'A negative one is no seed.' },
  },
} as const satisfies ParameterTable;

/** Name of a parameter in TokenRequest. */
export type ParameterName = keyof typeof PARAMETERS;

/** The option of programs for a parameter. */
export type OptionOf<Name extends ParameterName> = Name extends Name
  ? (typeof PARAMETERS)[Name] extends { option: infer Option extends string }
    ? Option
    : Name
  : never;

/** The parameters with all of their names. */
export const NAMED_PARAMETERS = namedParameters<ParameterName>(PARAMETERS);
