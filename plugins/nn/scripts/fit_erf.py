import numpy as np
from scipy.special import erf
# erf(x) = x * P(x^2) / Q(x^2) on |x| <= 4, relative fit, Q(0)=1
L=3.95
k=np.arange(4000); x=L*np.cos((k+.5)*np.pi/8000); x=x[x>1e-3]
z=x*x; f=erf(x)/x
np_,nq=6,5
w=np.ones_like(x)
s=L*L
best=None
for it in range(60):
    # f*(1+sum q z^j) - sum p z^i = 0, weighted relative /f /Qprev
    Z=z/s
    A=np.concatenate([np.stack([Z**i for i in range(np_+1)],1), -np.stack([f*Z**j for j in range(1,nq+1)],1)],1)
    if it==0: Q=np.ones_like(x)
    W=(w/(f*Q))[:,None]
    c,*_=np.linalg.lstsq(A*W,f*W[:,0],rcond=None)
    p=c[:np_+1]; q=np.r_[1,c[np_+1:]]
    Q=sum(q[j]*Z**j for j in range(nq+1)); P=sum(p[i]*Z**i for i in range(np_+1))
    e=np.abs(P/Q/f-1)
    if best is None or e.max()<best[0]: best=(e.max(),p.copy(),q.copy())
    w=w*(e/e.max()+.02)**.3; w/=w.max()
print(best[0])
p=best[1]/s**np.arange(np_+1); q=best[2]/s**np.arange(nq+1)
p32=p.astype(np.float32); q32=q.astype(np.float32)
print([repr(v) for v in p32]); print([repr(v) for v in q32])
xx=np.linspace(-6,6,2000001).astype(np.float32)
def g(x):
    x=np.clip(x,np.float32(-L),np.float32(L)); z=x*x
    P=np.float32(0)
    for v in p32[::-1]: P=P*z+v
    Q=np.float32(0)
    for v in q32[::-1]: Q=Q*z+v
    return x*P/Q
d=np.abs(g(xx).astype(np.float64)-erf(xx.astype(np.float64))); print(d.max(), xx[d.argmax()], 1-erf(L))
