/** Every prompt first, then `generate` tokens for all sequences together. */
export interface Shape {
  sequences: number;
  promptTokens: number;
  generate: number;
  /** True: of many sequences with one prompt all read its keys and values where they lie. */
  shared?: boolean;
  /** Times that it is run in one measurement; default: see runsOf. */
  runs?: number;
}

/**
 * Prompt tokens of all sequences together beyond which no engine computes them all: see hasCopiedContexts.
 */
const COMPUTED_TOKENS_MAX = 32_768;

/**
 * True: one prompt is computed and its keys and values are copied to the other sequences, each of which has its own in
 * memory: what generation reads is the same, and the prompts' minutes are saved.
 */
export function hasCopiedContexts({ sequences, promptTokens }: Shape): boolean {
  return sequences > 1 && sequences * promptTokens > COMPUTED_TOKENS_MAX;
}

/** 'SEQUENCESxPROMPT+GENERATED', followed by an s where the sequences share the prompt. */
export function shapeName({ sequences, promptTokens, generate, shared }: Shape): string {
  return `${sequences}x${promptTokens}+${generate}${shared ? 's' : ''}`;
}

const SHAPE_NAME = /^([1-9]\d*)x([1-9]\d*)\+([1-9]\d*)(s?)$/;

/** True for the names of shapeName; other columns have no rates. */
export function isShapeName(name: string): boolean {
  return SHAPE_NAME.test(name);
}

/** @throws naming a part that is none, or that generates too little to be timed. */
export function parseShapes(list: readonly string[], flag = '--shapes'): Shape[] {
  return list.map((text) => {
    const match = SHAPE_NAME.exec(text);
    if (!match || Number(match[3]) < 2)
      throw new Error(
        `${flag}: expected SEQUENCESxPROMPT+GENERATED with at least 2 generated, found '${text}'.`,
      );
    const [sequences, promptTokens, generate] = match.slice(1, 4).map(Number) as [number, number, number];
    return { sequences, promptTokens, generate, ...(match[4] === 's' && { shared: true }) };
  });
}
