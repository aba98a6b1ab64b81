// @ts-check
// An encoder in this process as LangChain's Embeddings.      npm install skein @langchain/core
//
//     node langchain.mjs "Who looks after the animals?"
//
// With `skein serve`, OpenAIEmbeddings of @langchain/openai does the same: configuration: { baseURL: 'http://127.0.0.1:8000/v1' }.
import { Document } from '@langchain/core/documents';
import { Embeddings } from '@langchain/core/embeddings';
import { VectorStore } from '@langchain/core/vectorstores';
import { Encoder } from 'skein';

class SkeinEmbeddings extends Embeddings {
  /** @param {Encoder} encoder */
  constructor(encoder) {
    super({});
    this.encoder = encoder;
  }

  /** @param {string[]} texts */
  async embedDocuments(texts) {
    return (await this.encoder.embed(texts)).map((row) => [...row]);
  }

  /** @param {string} text */
  async embedQuery(text) {
    return [.../** @type {Float32Array} */ ((await this.encoder.embed(text))[0])];
  }
}

/** Vectors in memory, for rows of length 1, whose products are their cosines. */
class InMemory extends VectorStore {
  /** @type {{ row: number[], document: Document }[]} */
  kept = [];

  _vectorstoreType() {
    return 'in-memory';
  }

  /** @param {Document[]} documents */
  async addDocuments(documents) {
    const rows = await this.embeddings.embedDocuments(documents.map(({ pageContent }) => pageContent));
    await this.addVectors(rows, documents);
  }

  /** @param {number[][]} rows @param {Document[]} documents */
  async addVectors(rows, documents) {
    this.kept.push(...documents.map((document, i) => ({ document, row: rows[i] ?? [] })));
  }

  /** @param {number[]} query @param {number} k @returns {Promise<[Document, number][]>} */
  async similaritySearchVectorWithScore(query, k) {
    const product = (/** @type {number[]} */ row) =>
      row.reduce((sum, value, i) => sum + value * (query[i] ?? 0), 0);
    const scored = this.kept.map(
      ({ row, document }) => /** @type {[Document, number]} */ ([document, product(row)]),
    );
    return scored.sort(([, a], [, b]) => b - a).slice(0, k);
  }
}

const encoder = await Encoder.load({ model: process.env.MODEL ?? 'sentence-transformers/all-MiniLM-L6-v2' });
const store = new InMemory(new SkeinEmbeddings(encoder), {});
await store.addDocuments(
  [
    'The zoo opens at nine and closes at dusk.',
    'Keepers feed the lions and clean their cages each morning.',
    'A ticket costs twelve euros, and children pay half.',
  ].map((pageContent) => new Document({ pageContent })),
);
const retriever = store.asRetriever({ k: 1 });
const found = await retriever.invoke(process.argv[2] ?? 'Who looks after the animals?');
for (const { pageContent } of found) console.log(pageContent);
await encoder.close();
