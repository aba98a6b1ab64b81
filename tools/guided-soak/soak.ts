import type { Skein } from 'skein';
import { Random } from '../soak/random.js';
import { type Json, randomSchema } from './random-schema.js';
import { NO_TEXT, newValidator } from './validator.js';

export interface GuidedSoakOptions {
  skein: Skein;
  count: number;
  seed: number;
  /** Requests at a time. */
  crowd: number;
  maxTokens: number;
}

export interface GuidedSoakResult {
  /** Answers that came to their ends, all of them checked. */
  complete: number;
  /** Cut off by their number of tokens, or at the end of the context. */
  cut: number;
  /** Schemas that no text matches. */
  refused: number;
  failures: string[];
}

/**
 * Random schemas, each answered with random sampling, many at once. Every answer that was not cut off must be JSON that
 * ajv holds for valid.
 */
export async function runGuidedSoak(options: GuidedSoakOptions): Promise<GuidedSoakResult> {
  const result: GuidedSoakResult = { complete: 0, cut: 0, refused: 0, failures: [] };
  const ajv = newValidator();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < options.count) {
      const number = next++;
      const random = new Random(options.seed * 1_000_003 + number);
      const schema = randomSchema(random);
      await answer(options, random, schema).then(
        ({ text, finishReason }) => {
          if (finishReason !== 'stop') result.cut++;
          else {
            result.complete++;
            const why = whyInvalid(ajv, schema, text);
            if (why !== null)
              result.failures.push(describe(number, schema, `${why}: ${JSON.stringify(text)}`));
          }
        },
        (error: Error) => {
          if (NO_TEXT.test(error.message)) result.refused++;
          else result.failures.push(describe(number, schema, error.message));
        },
      );
    }
  };
  await Promise.all(Array.from({ length: options.crowd }, work));
  return result;
}

function answer({ skein, maxTokens }: GuidedSoakOptions, random: Random, schema: Json) {
  return skein.complete({
    prompt: random.pick(['Answer in JSON: ', '{', 'A list of things', 'x']),
    guided: { json: schema as object },
    maxTokens,
    seed: random.integer(0, 1_000_000),
    temperature: random.pick([0, 0.3, 0.7, 1, 1, 1.5, 3]),
    ...(random.chance(0.3) ? { topP: 0.9 } : {}),
    ...(random.chance(0.3) ? { topK: random.integer(1, 50) } : {}),
    ...(random.chance(0.3) ? { repetitionPenalty: 1.2 } : {}),
    ...(random.chance(0.2) ? { frequencyPenalty: 0.5 } : {}),
  });
}

function whyInvalid(ajv: ReturnType<typeof newValidator>, schema: Json, text: string): string | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `not JSON (${(error as Error).message})`;
  }
  const isValid = ajv.compile(schema as object);
  if (isValid(value)) return null;
  const [error] = isValid.errors!;
  return `not valid (${error!.instancePath} ${error!.message})`;
}

function describe(number: number, schema: Json, what: string): string {
  return `request ${number}: ${what}\n  of ${JSON.stringify(schema)}`;
}
