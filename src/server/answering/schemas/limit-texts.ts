import type * as z from 'zod';

/** Limits of a list of texts, in UTF-16 units. */
export interface TextLimits {
  each: number;
  all: number;
}

/**
 * Makes a check for superRefine that limits texts, whose lengths decide the cost. @param what name of the texts, for
 * errors
 */
export function limitTexts(what: string, { each, all }: TextLimits) {
  return (texts: readonly string[], context: z.RefinementCtx): void => {
    const refuse = (message: string, path: number[] = []) =>
      context.addIssue({ code: 'custom', message, path, continue: false });
    const long = texts.findIndex((text) => text.length > each);
    if (long >= 0) {
      const place = texts.length === 1 ? [] : [long];
      refuse(`it is ${texts[long]!.length} characters long, at most ${each} are taken`, place);
      return;
    }
    const sum = texts.reduce((length, text) => length + text.length, 0);
    if (sum > all) refuse(`the ${what} have ${sum} characters together, at most ${all} are taken`);
  };
}
