/** Topics of routes, in the order of the description. */
export const TAGS = {
  Generation: 'Text from a model.',
  Encoders: 'Embeddings and scores of texts.',
  Messages: "Text from a model, by Anthropic's API.",
  Responses: "Text from a model, by OpenAI's newer API, which keeps conversations.",
  Conversations: 'Conversations that responses answer and add to.',
  Batches: 'Many requests in a file, answered while others are served.',
  Ollama: "Ollama's API, for its clients.",
  Inference: 'Tensors into and out of any model, by the Open Inference Protocol (KServe v2).',
  Models: 'What is served.',
  Server: 'How the server fares.',
  Documentation: 'What the server says of itself.',
} as const;

export type Tag = keyof typeof TAGS;
