// URLs of modules that workers run: files next to this one, also where both are bundled.

/** The engine's worker, which runs the token generation loop. */
export const generationWorkerScript = (): URL => new URL('./generation-worker.js', import.meta.url);

/** A rank's worker, which runs its part of what rank 0 decides. */
export const rankWorkerScript = (): URL => new URL('./rank-worker.js', import.meta.url);
