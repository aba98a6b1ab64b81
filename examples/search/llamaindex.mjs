// @ts-check
// An encoder in this process as the embedding model of LlamaIndex.TS.      npm install skein llamaindex
//
//     node llamaindex.mjs "Who looks after the animals?"
import { BaseEmbedding, Document, Settings, VectorStoreIndex } from 'llamaindex';
import { Encoder } from 'skein';

class SkeinEmbedding extends BaseEmbedding {
  /** @param {Encoder} encoder */
  constructor(encoder) {
    super();
    this.encoder = encoder;
    this.embedBatchSize = 512;
  }

  /** @override @param {string} text */
  getTextEmbedding = async (text) => (await this.getTextEmbeddings([text]))[0] ?? [];

  /** @override @param {string[]} texts */
  getTextEmbeddings = async (texts) => (await this.encoder.embed(texts)).map((row) => [...row]);
}

const encoder = await Encoder.load({ model: process.env.MODEL ?? 'sentence-transformers/all-MiniLM-L6-v2' });
Settings.embedModel = new SkeinEmbedding(encoder);
const index = await VectorStoreIndex.fromDocuments(
  [
    'The zoo opens at nine and closes at dusk.',
    'Keepers feed the lions and clean their cages each morning.',
    'A ticket costs twelve euros, and children pay half.',
  ].map((text) => new Document({ text })),
);
const found = await index
  .asRetriever({ similarityTopK: 1 })
  .retrieve(process.argv[2] ?? 'Who looks after the animals?');
for (const { node, score } of found)
  console.log(`${score?.toFixed(3)}  ${node.getContent(/** @type {any} */ ('none'))}`);
await encoder.close();
