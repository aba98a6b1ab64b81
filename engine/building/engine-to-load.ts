import { type Engine, openEngine } from './engine.js';

/**
 * Opens what an executor is to load: an engine directory or, without panels, a GGUF that is computed with as it lies.
 *
 * @param panels see OptionalParams
 * @throws EngineError as openEngine; as openStoredEngine
 */
export async function engineToLoad(path: string, panels = true): Promise<Engine> {
  if (panels) return openEngine(path);
  // Imported here because most starts read no checkpoint.
  const { openStoredEngine } = await import('./stored-engine.js');
  return openStoredEngine(path);
}
