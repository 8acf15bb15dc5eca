use super::*;
use crate::net::connections::{Connections, Door};
use crate::net::limits::Limits;
use crate::os::net::{self, Sockets};
use crate::security::session::ListenerKind;

/// Answers each frame with itself.
struct Echo;

impl Service for Echo {
    fn frame_limit(&self, _: Option<i16>) -> usize {
        1000
    }

    fn call(&self, _: &Arc<Session>, frame: Bytes) -> BoxFuture<'static, Result<Reply, Close>> {
        let chunk = Chunk::Bytes(frame);
        Box::pin(std::future::ready(Ok(Reply::Now(vec![chunk]))))
    }
}

/// Both ends of a connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = net::listen(([127, 0, 0, 1], 0).into(), Sockets::default()).unwrap();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    let connect = socket.connect(listener.local_addr().unwrap());
    let (client, server) = tokio::join!(connect, listener.accept());
    (client.unwrap(), server.unwrap().0)
}

async fn place(stream: TcpStream) -> (Place, Arc<Session>) {
    let config = crate::config::BrokerConfig::from_properties(&[]).unwrap().0;
    let limits = Limits::of(&config, "PLAINTEXT").await;
    let listener: Arc<str> = "PLAINTEXT".into();
    let door = Door {
        listener: &listener,
        limits: &limits,
        is_protected: false,
    };
    let peer = stream.peer_addr().unwrap();
    let local = stream.local_addr().unwrap();
    let place = Connections::new().enter(door, stream, peer).unwrap();
    let kind = ListenerKind::Broker;
    let session = Session {
        listener,
        kind,
        peer,
        local,
    };
    (place, Arc::new(session))
}

fn shared() -> Arc<Shared<Echo>> {
    Arc::new(Shared {
        service: Arc::new(Echo),
        budget: Budget::new(-1, 500),
        replies_max: 64,
        tasks: Tasks::new(),
    })
}

#[tokio::test]
async fn the_task_of_a_connection_is_small() {
    let (_client, server) = pair().await;
    let (place, session) = place(server).await;
    let size = size_of_val(&run(place, session, shared()));
    println!("the task of a connection has {size} bytes");
    assert!(size < 640, "{size}");
}

#[tokio::test]
async fn frames_are_answered_until_the_client_ends() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut client, server) = pair().await;
    let (place, session) = place(server).await;
    let talk = async {
        client.write_all(b"\0\0\0\x03one\0\0\0\x03t").await.unwrap();
        client.write_all(b"wo").await.unwrap();
        client.shutdown().await.unwrap();
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        got
    };
    let ((), got) = tokio::join!(run(place, session, shared()), talk);
    assert_eq!(got, b"onetwo");
}
