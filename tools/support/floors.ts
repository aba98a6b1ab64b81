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
