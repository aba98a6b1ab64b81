const warned = new Set<string>();

/** Warns a program once where its model runs on a slower executor than this machine could use. */
export function warnOfFallback({ executorFallback }: { executorFallback: string | null }): void {
  if (executorFallback === null || warned.has(executorFallback)) return;
  warned.add(executorFallback);
  process.emitWarning(executorFallback, { type: 'SkeinWarning', code: 'SKEIN_EXECUTOR_FALLBACK' });
}
