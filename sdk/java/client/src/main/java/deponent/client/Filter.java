package deponent.client;

import deponent.rpc.Decoder;

/**
 * A filter at a server, which is asked for what is new. It is known there alone, and for some
 * minutes after the last question.
 *
 * @param id the server's name for it
 * @param read the reader of each value
 * @param <T> the type of values
 */
public record Filter<T>(String id, Decoder<T> read) {}
