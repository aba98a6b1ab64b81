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
 * floors in front of its own. Neighbours on a floor do not know each other. No arrow inside a room climbs.
 */
export const INNER_FLOORS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  scheduler: [['tensors', 'tokens']],
  engine: [
    ['packed-call', 'peft'],
    ['decoding'],
    ['sequences'],
    ['request'],
    ['batch', 'iteration-planner'],
    ['schemes'],
    ['options'],
    ['directory'],
    ['sharding'],
    ['executors'],
    ['ranks'],
    ['kinds'],
    ['building'],
    ['backends', 'disk-cache', 'guided', 'simulation', 'speculation'],
    ['service'],
    ['intake'],
    ['loop'],
    ['generation-loop'],
    ['worker'],
    ['encoder', 'tower'],
  ],
  host: [
    [
      'attempt-faults',
      'engine-failure',
      'formation-writer',
      'frame-verdict',
      'post-processor-functions',
      'queue',
      'token-fields',
      'token-values',
    ],
    ['links', 'lost-requests', 'manager-life', 'pending-asks', 'room-queue', 'token-inputs'],
    ['host-bridge', 'ranks', 'sent-adapters', 'token-parts', 'watchdog'],
    ['answer-so-far', 'gathered-parts', 'piece-reader', 'worker-supervisor'],
    ['gpt-manager', 'token-stream'],
    ['sequence-queues'],
    ['host-entry'],
    ['adapter-sends', 'formation-watchers', 'resumption'],
    ['in-process-host'],
    ['batch'],
    ['encoder-host', 'tower-host'],
  ],
  cluster: [['routing', 'zeromq'], ['nats'], ['gateway', 'simulation']],
  src: [
    ['errors', 'prompt-rules', 'request-vocabulary', 'texts'],
    ['options'],
    ['schemas', 'hub', 'batch'],
    ['generation'],
    ['encoding'],
    ['serving'],
    ['server'],
    ['library', 'settings'],
    ['ai-sdk', 'langchain', 'llamaindex'],
    ['queue', 'terminal'],
    ['asking'],
    ['chat', 'completion', 'doctor', 'mcp', 'top'],
    ['commands'],
    ['cli', 'index'],
  ],
  'src/server': [
    ['web'],
    ['feeds', 'files', 'logs', 'mcp', 'metrics', 'sockets', 'tracing'],
    ['answering', 'batches', 'dashboard', 'inferring'],
    ['anthropic', 'grpc', 'kserve', 'ollama', 'openai'],
    ['app'],
    ['listening'],
  ],
};
