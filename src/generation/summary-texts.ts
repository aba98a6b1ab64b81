/** Most tokens of a summary, the reasoning before it included. */
const MAX_SUMMARY_TOKENS = 4096;
/** Share of a context that is left for it. */
const SUMMARY_SHARE = 1 / 4;

/** Most tokens of a summary in a context of `contextTokens` tokens. */
export const maxSummaryTokens = (contextTokens: number) =>
  Math.min(MAX_SUMMARY_TOKENS, Math.floor(contextTokens * SUMMARY_SHARE));

/**
 * What the model is asked for, after the conversation that is summarised.
 * @param kept what of the conversation the model sees later
 */
export const summaryPrompt = (
  kept: string,
) => `This conversation has become long and is about to be replaced by a summary. Write that summary now, for a model that goes on with the work and sees nothing of the conversation but ${kept}.

Say:
- what the user wants, and any wishes and limits that still hold;
- what has been done and decided so far, and why;
- what was found out that is still needed: names of files, commands, values, errors, exact words;
- what is left to do, the next step first.

Be brief and exact. Do not go on with the work, call no tools, and write nothing but the summary.`;

/** Replaces a summary that the model did not write. */
export const NO_SUMMARY = '(There is no summary.)';

/** The message in which a model finds the summary of what was before. */
export function summaryMessage(summary: string): string {
  return `The conversation before this point was long and has been replaced by this summary. Take the work up where it stops, and do not do again what it says is done.\n\n${summary}`;
}
