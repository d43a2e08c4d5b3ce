import { NewPassword, PasswordProof } from '../dist/core.js';
import type { Calls, Proof } from './protocol.ts';

/** The side of a proof in the worker. */
export class ProofWork {
  readonly #proof: PasswordProof;

  constructor({ password, newPassword, seed }: Calls['proofBegin']['ask']) {
    this.#proof = new PasswordProof(password, newPassword, seed);
  }

  messages(): Proof {
    const message = this.#proof.message() as Uint8Array<ArrayBuffer>;
    const newMessage = this.#proof.newMessage() as Uint8Array<ArrayBuffer> | undefined;
    return { message, newMessage: newMessage ?? null };
  }

  finish({ message, newMessage }: Proof): Proof {
    this.#proof.finish(message, newMessage);
    return this.messages();
  }

  free(): void {
    this.#proof.free();
  }
}

/** The side of the password of a new account in the worker. */
export class NewPasswordWork {
  readonly #new: NewPassword;

  constructor({ password, seed }: Calls['passwordBegin']['ask']) {
    this.#new = new NewPassword(password, seed);
  }

  message(): Uint8Array<ArrayBuffer> {
    return this.#new.message() as Uint8Array<ArrayBuffer>;
  }

  finish(answer: Uint8Array): Uint8Array<ArrayBuffer> {
    this.#new.finish(answer);
    return this.message();
  }

  free(): void {
    this.#new.free();
  }
}
