/** The rooms of the house from the ground up: each may import from those in front of it, types included. */
export const FLOORS = [
  'base',
  'scheduler',
  'kvcache',
  'network',
  'models',
  'callbacks',
  'engine',
  'host',
  'cluster',
  'loadgen',
  'src',
  'tools',
] as const;

/** Rooms that a room may not import although they lie below: the load generator is a client and knows nothing of the engine. */
export const STRANGERS: Readonly<Record<string, readonly string[]>> = {
  loadgen: ['scheduler', 'kvcache', 'network', 'models', 'callbacks', 'engine', 'host', 'cluster'],
};

/**
 * Floors inside the larger rooms, from the ground up: a folder, or a loose file by its name without ending, imports from
 * floors in front of its own. Neighbours on a floor do not know each other.
 */
export const INNER_FLOORS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  src: [
    ['errors', 'optional-packages', 'request-vocabulary'],
    ['options'],
    ['schemas', 'hub', 'batch'],
    ['generation'],
    ['encoding'],
    ['serving'],
    ['server'],
    ['library', 'settings'],
    ['queue', 'terminal'],
    ['asking'],
    ['chat', 'completion', 'top'],
    ['commands'],
    ['cli', 'index'],
  ],
  'src/server': [
    ['web'],
    ['feeds', 'files', 'logs', 'metrics', 'sockets', 'tracing'],
    ['answering', 'batches', 'dashboard', 'inferring'],
    ['anthropic', 'grpc', 'kserve', 'ollama', 'openai'],
    ['app'],
    ['listening'],
  ],
};
