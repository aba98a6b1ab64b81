import { callback, isObject, NAME, rule } from '../../../base/option-values.js';
import { ENGINE_TABLE } from '../../../callbacks/options/table.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import { optionFault, type Rules, SIGNAL } from '../../options/option-faults.js';
import { LOADING_OPTIONS } from '../../options/server/loading.js';
import { ENCODER_OPTIONS, type EncoderOptions } from '../../serving/load-encoder-model.js';
import type { ModelOptions } from '../../serving/model-options.js';

const OF_SERVER = Object.entries(LOADING_OPTIONS).map(([name, { values }]) => [name, values]);
const OF_ENGINE = ENGINE_TABLE.flatMap(({ option: { name, plain } }) =>
  name === null ? [] : [[name, plain]],
);

const MODEL_RULES = {
  ...Object.fromEntries([...OF_SERVER, ...OF_ENGINE]),
  model: NAME,
  adapters: rule(
    "an object of names and paths such as { sql: './sql-lora' }",
    (value) =>
      isObject(value) && Object.values(value).every((path) => typeof path === 'string' && path !== ''),
  ),
  onDownload: callback(),
  onProgress: callback(),
  onDamaged: callback(),
  onMissingRanks: callback(),
  signal: SIGNAL,
} as Rules<ModelOptions>;

/** @throws ParameterError for an unknown option, or a value that an option does not take. */
export function checkModelOptions(options: unknown): asserts options is ModelOptions {
  checkLoading('Skein.load', "{ model: './smollm2-135m-instruct' }", options, MODEL_RULES);
}

/**
 * Checks the options of a load. @param call the caller's own words for it, for errors. @throws ParameterError as
 * checkModelOptions.
 */
function checkLoading<Options extends { model: string }>(
  call: string,
  example: string,
  options: unknown,
  rules: Rules<Options>,
): void {
  const fault = optionFault<Options>(call, example, options, rules);
  if (fault !== null) throw new ParameterError(fault.option ?? 'options', fault.message);
  if ((options as Options).model === undefined) {
    throw new ParameterError('model', `${call} needs the option model, such as ${example}.`);
  }
}

/** Tokens of the KV cache of a model inside another program, over all requests: 64 requests of 512 tokens, say. */
const EMBEDDED_KV_CACHE_TOKENS = 32_768;

/**
 * The options with the defaults of a model inside another program: those of a server, with a KV cache that leaves the program its
 * memory, of which a server takes nearly all that is free. An explicit cache size or context length is kept.
 */
export function withEmbeddedDefaults(options: ModelOptions): ModelOptions {
  const {
    chunkedPrefill = true,
    prefixCaching = true,
    kvCacheTokens,
    memoryFraction,
    maxContextTokens = 0,
  } = options;
  const defaulted = { ...options, chunkedPrefill, prefixCaching };
  if (kvCacheTokens !== undefined || memoryFraction !== undefined) return defaulted;
  return { ...defaulted, kvCacheTokens: Math.max(EMBEDDED_KV_CACHE_TOKENS, maxContextTokens) };
}

const RULES = Object.fromEntries(
  ENCODER_OPTIONS.map((name) => [name, MODEL_RULES[name]]),
) as Rules<EncoderOptions>;

/** @throws ParameterError for an unknown option, or a value that an option does not take. */
export function checkEncoderOptions(options: unknown): asserts options is EncoderOptions {
  checkLoading('Encoder.load', "{ model: './all-MiniLM-L6-v2' }", options, RULES);
}
